"""The page's style sheet: light and dark, wide and narrow."""

from __future__ import annotations

STYLE = r"""
:root{color-scheme:light dark;--text:#1b1f24;--soft:#59636e;--line:#d8dee4;--page:#f6f8fa;--card:#fff;--track:#e7ebef;
--fill:#2f6fde;--guest:#0f8a6d;--near:#935600;--over:#c4281c;--good:#1a7f4b;--link:#0a58c2}
@media(prefers-color-scheme:dark){:root{--text:#e6eaef;--soft:#9aa5b1;--line:#30363d;--page:#0f1318;--card:#171c22;
--track:#2a313a;--fill:#5b9bff;--guest:#35bd98;--near:#e0a13a;--over:#ff7468;--good:#4cc38a;--link:#7db2ff}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:15px/1.45 system-ui,sans-serif}
main,header{max-width:72rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:1.5rem;display:flex;flex-wrap:wrap;align-items:baseline;gap:.25rem 1rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.05rem;margin:1.75rem 0 .6rem}
a{color:var(--link)}:focus-visible{outline:2px solid var(--link);outline-offset:2px;border-radius:4px}
.soft{color:var(--soft)}.push{margin-left:auto}
.pill{display:inline-block;padding:.05rem .6rem;border-radius:1rem;border:1px solid currentColor;font-size:.8rem;
font-weight:600;white-space:nowrap;max-width:100%;overflow:hidden;text-overflow:ellipsis;vertical-align:bottom}
.good{color:var(--good)}.near{color:var(--near)}.over{color:var(--over)}
.note{border:1px solid var(--line);border-left:4px solid var(--near);background:var(--card);border-radius:8px;
padding:.6rem 1rem;margin:1rem 0}.note ul{margin:.25rem 0;padding-left:1.25rem}
details,.empty,.events{background:var(--card);border:1px solid var(--line);border-radius:10px;margin:0 0 .6rem}
summary{cursor:pointer;padding:.7rem 1rem;display:grid;grid-template-columns:minmax(9rem,1.5fr) 6.5rem repeat(3,1fr);
gap:.4rem 1.25rem;align-items:center;list-style:none}
summary::-webkit-details-marker{display:none}
summary b{overflow-wrap:anywhere}summary b::before{content:"\25B8";color:var(--soft);display:inline-block;width:1.1em}
[open]>summary b::before{content:"\25BE"}
.figure{font-size:.82rem;font-variant-numeric:tabular-nums}.figure span{display:block}
.bar{display:block;width:100%;height:8px;border-radius:4px;background:var(--track);margin-top:.2rem;overflow:hidden}
.bar rect{fill:var(--fill)}.bar.guest rect{fill:var(--guest)}.bar.near rect{fill:var(--near)}
.bar rect.beyond{fill:var(--over);stroke:var(--card);stroke-width:1.5}
.within{padding:0 1rem .9rem;overflow-x:auto}
table{border-collapse:collapse;width:100%;table-layout:fixed;min-width:24rem;font-size:.88rem}
th,td{text-align:left;font-weight:400;padding:.35rem .75rem .35rem 0;border-top:1px solid var(--line);
vertical-align:middle}
thead th,thead td{color:var(--soft);font-size:.78rem;border-top:0}tbody th{overflow-wrap:anywhere}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.used{width:27%}.asked{width:14%}td.wide{width:30%;padding-right:0}
td.number .over{margin-right:.6rem;font-size:.92em}td .bar{margin:0}tr.sum th,tr.sum td{font-weight:600}
.empty,.within p{color:var(--soft);margin:.2rem 0}.empty{padding:1.5rem;text-align:center}
.events{list-style:none;padding:.3rem 1rem}.events li{padding:.45rem 0;
border-top:1px solid var(--line);overflow-wrap:anywhere}
.events li:first-child{border-top:0}.events time{color:var(--soft);font-variant-numeric:tabular-nums;margin-right:.6rem}
footer{max-width:72rem;margin:1.5rem auto 2rem;padding:0 1.25rem;color:var(--soft);font-size:.85rem}
@media(max-width:46rem){summary{grid-template-columns:minmax(0,1fr) auto}
.figure{grid-column:1/-1}.figure .soft{display:inline}
table{min-width:0}.used{width:36%}.asked{width:28%}td.number .over{display:block;margin:0}td.wide{display:none}
.push{margin:0}}
@media(forced-colors:active){.bar{border:1px solid CanvasText;forced-color-adjust:none}}
"""
