// Stands in for libFuzzer where there is none: changes the inputs of a folder at random until the time is up, unguided.
//
//     harness -max_total_time=SECONDS FOLDER...    (or single files, to run them alone)
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed);

namespace {

std::string current;

std::string read(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void run(const std::string& text) {
    current = text;
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

}  // namespace

extern "C" void __sanitizer_set_death_callback(void (*callback)());

extern "C" void keep_input() {
    std::ofstream("crash-input", std::ios::binary) << current;
    std::fprintf(stderr, "the input is in crash-input\n");
}

int main(int argc, char** argv) {
    __sanitizer_set_death_callback(keep_input);
    std::signal(SIGABRT, [](int) { keep_input(); });
    long seconds = 60;
    std::vector<std::string> seeds;
    for (int i = 1; i < argc; ++i) {
        const std::string arg = argv[i];
        if (arg.rfind("-max_total_time=", 0) == 0) seconds = std::atol(arg.c_str() + 16);
        else if (arg[0] == '-') continue;
        else if (std::filesystem::is_directory(arg))
            for (const auto& entry : std::filesystem::directory_iterator(arg)) seeds.push_back(read(entry.path()));
        else seeds.push_back(read(arg)), seconds = 0;
    }
    for (const std::string& seed : seeds) run(seed);
    const std::vector<std::string> first = seeds;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    std::vector<uint8_t> room(65536);
    unsigned long runs = 0;
    for (unsigned seed = 1; !seeds.empty() && std::chrono::steady_clock::now() < end; ++seed, ++runs) {
        std::string& from = seeds[seed % seeds.size()];
        if (from.size() > room.size()) continue;
        std::memcpy(room.data(), from.data(), from.size());
        const size_t size = LLVMFuzzerCustomMutator(room.data(), from.size(), room.size(), seed * 2654435761U);
        run(std::string(reinterpret_cast<char*>(room.data()), size));
        // Changes add up for a while.
        if (seed % 64 == 0) from = first[seed % seeds.size()];
        else from.assign(reinterpret_cast<char*>(room.data()), size);
    }
    std::fprintf(stderr, "Done %lu runs in %ld seconds\n", runs, seconds);
    return 0;
}
