// The native core under a fuzzer: the generated domain.cpp is compiled in, so the conversion runs as it is shipped, but without
// an interpreter; nothing here calls Python.
//
// An input is the converter context and the VMI, both JSON, with the first line break between them. What is checked, beside
// what the sanitizers see: the XML is well-formed, and a conversion leaves nothing behind for the next one.
#include "domain.cpp"  // what Cython made of kvnode/_fast/domain.pyx

#include <cstdio>

#include "mutate.hpp"
#include "wellformed.hpp"

namespace {

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "FUZZ: %s\n", what);
    std::abort();
}

// Sees the whole of a text that the core hands out: sanitizers check what is read.
void use(const std::string& s) {
    for (const char c : s)
        if (c == '\n' || c == '\0') fail("an error message is not one line");
}

// The outcome as text: the XML, or the error.
std::string convert(kv::Parser& parser, kv::Build& b, const kv::ContextData& context, const char* json, size_t size) {
    b.ctx = &context;
    const char* problem = __pyx_f_6kvnode_5_fast_6domain_convert_one(parser, b, json, size);
    if (problem) return std::string("!") + problem;
    if (b.w.failed || b.qemu.failed) fail("out of memory");
    if (b.error.set) {
        const std::string outcome = "!" + kv::error_field(b) + ": " + kv::error_message(b);
        use(outcome);
        return outcome;
    }
    if (b.w.invalid || b.qemu.invalid) {
        const std::string outcome = "!" + kv::path_of(b.w.bad);
        use(outcome);
        return outcome;
    }
    return std::string(b.w.data, b.w.size);
}

void run(const char* data, size_t size) {
    static kv::Parser parser;  // kept from one input to the next, as the library keeps them
    static kv::Build kept;
    const void* at = std::memchr(data, '\n', size);
    const size_t split = at ? static_cast<size_t>(static_cast<const char*>(at) - data) : 0;
    kv::ContextData context;
    if (split > 0) {
        kv::Build b;
        b.ctx = &context;
        if (context.parser.parse(data, split)) return;
        context.parser.keep();
        __pyx_f_6kvnode_5_fast_6domain_bind_context(b, context);
        if (b.error.set) {
            use(kv::error_field(b));
            use(kv::error_message(b));
            return;
        }
    } else {
        context.kvm_available = true;
    }
    const char* vmi = data + (at ? split + 1 : 0);
    const size_t vmi_size = size - (at ? split + 1 : 0);
    const std::string first = convert(parser, kept, context, vmi, vmi_size);
    if (first.empty()) fail("neither XML nor an error");
    if (first[0] != '!' && !kvfuzz::well_formed(first)) {
        std::fwrite(first.data(), 1, first.size(), stderr);
        fail("the XML is not well-formed");
    }
    kv::Build fresh;
    if (convert(parser, fresh, context, vmi, vmi_size) != first) fail("the outcome depends on the conversion before");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    run(reinterpret_cast<const char*>(data), size);
    return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
    return kvfuzz::mutate(data, size, most, seed);
}
