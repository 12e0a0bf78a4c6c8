#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "common/base/prng.h"
#include "sidecar/pack/pack_run.h"
#include "tests/support/origin_calls.h"
#include "tests/support/temp_folder.h"

namespace stoker::test {

inline const SystemClock kSystemClock;

inline const char* no_environment(const char*) {
    return nullptr;
}

inline std::string file_text(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream{path, std::ios::binary}.rdbuf();
    return std::move(text).str();
}

inline void write_file(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path, std::ios::binary} << text;
}

// A folder of samples, and another one to pack them into, in chunks of 8 KiB.
class PackedFolder {
public:
    explicit PackedFolder(std::size_t count = 200, std::uint64_t seed = 1) {
        Prng random{seed};
        for (std::size_t i = 0; i < count; ++i) {
            std::string text(i == 0 ? 0 : random.below(600), '\0');
            for (char& byte : text) {
                byte = static_cast<char>(random());
            }
            add("class" + std::to_string(i % 3) + "/" + std::to_string(i) + ".bin", text);
        }
        options.settings.chunk_bytes = kib(8);
        options.threads = 3;
        origin_options.retry = {.attempts_max = 3, .backoff_first = std::chrono::milliseconds{1}};
    }

    void add(const std::string& key, const std::string& text) {
        write_file(std::filesystem::path{source()} / key, text);
        samples[key] = text;
    }

    [[nodiscard]] std::string source() const { return folder_.path() + "/source"; }

    [[nodiscard]] std::string target() const { return folder_.path() + "/packed"; }

    [[nodiscard]] std::filesystem::path target_file(const std::string& key) const {
        return std::filesystem::path{target()} / key;
    }

    [[nodiscard]] std::unique_ptr<sidecar::Origin> open(
        const std::string& uri,
        domain::SampleFormat format = domain::SampleFormat::kObjects) const {
        sidecar::OriginOptions wanted = origin_options;
        wanted.format = format;
        return sidecar::make_origin(uri, wanted, no_environment, kSystemClock, 1).value();
    }

    [[nodiscard]] std::unique_ptr<sidecar::ObjectWriter> writer(const std::string& uri) const {
        return sidecar::make_object_writer(uri, origin_options, no_environment, kSystemClock, 1)
            .value();
    }

    Result<sidecar::PackProgress> pack(
        const std::string& to = "", const sidecar::OnPackProgress& on_progress = {}) {
        const std::string uri = to.empty() ? "file://" + target() : to;
        const auto write = writer(uri);
        const auto read = open(uri);
        const auto from = open("file://" + source());
        return sidecar::run_pack(*from, {*read, *write}, options, on_progress, stop.get_token());
    }

    std::map<std::string, std::string> samples;
    sidecar::PackOptions options;
    sidecar::OriginOptions origin_options;
    std::stop_source stop;

private:
    TempFolder folder_;
};

}  // namespace stoker::test
