// stoker-bench prepare FOLDER [SAMPLES MEAN_BYTES]
//                                    writes the samples in the format of every driver
// stoker-bench link URL COPIES for each line `FIRST_PASS PASSES` reads
// one pass from the objects below URL and prints `SECONDS
// BYTES_PER_SECOND`, the rate from the third second on stoker-bench KIND
// PATH for each line `FIRST_PASS PASSES` on stdin, reads that many passes
// in random order and prints `SECONDS SUM`; KIND: stoker, mmap, files,
// redis
//
// bench/run.py starts one process for each side of a comparison and alternates between them.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string_view>

#include <fmt/core.h>

#include "bench/driver.h"
#include "bench/workload.h"
#include "common/base/bytes.h"
#include "common/domain/segment_format.h"
#include "tests/support/node_directory.h"

namespace stoker::bench {

namespace {

std::vector<domain::ListedObject> listed_objects(const std::vector<std::uint64_t>& sizes) {
    std::vector<domain::ListedObject> objects;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        objects.push_back({sample_key(i), sizes[i], fmt::format("etag-{}", i)});
    }
    return objects;
}

// Writes the same bytes in three forms: a node directory, one flat file, one file per sample.
void prepare(const std::filesystem::path& folder, const Workload& workload) {
    const auto sizes = sample_sizes(workload);
    std::filesystem::create_directories(folder / "node");
    test::NodeDirectory node{folder / "node", listed_objects(sizes)};
    std::ofstream flat{folder / "flat.bin", std::ios::binary | std::ios::trunc};
    const std::uint64_t capacity = mib(64).count();
    std::uint64_t room = 0;
    std::vector<std::byte> payload;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        payload.resize(sizes[i]);
        fill_sample(i, payload);
        if (room < domain::record_bytes(payload.size())) {
            node.start_segment(capacity);
            room = capacity - domain::kSegmentHeaderBytes;
        }
        node.put(domain::SampleId{i}, payload);
        room -= domain::record_bytes(payload.size());
        const auto* raw = reinterpret_cast<const char*>(payload.data());
        const auto length = static_cast<std::streamsize>(payload.size());
        flat.write(raw, length);
        const auto file = folder / "files" / sample_key(i);
        std::filesystem::create_directories(file.parent_path());
        std::ofstream{file, std::ios::binary | std::ios::trunc}.write(raw, length);
    }
}

std::unique_ptr<Driver> make_driver(std::string_view kind, const std::string& path) {
    if (kind == "stoker") {
        return stoker_client(path);
    }
    if (kind == "mmap") {
        return mapped_file(path);
    }
    if (kind == "files") {
        return one_file_a_sample(path, kSampleCount);
    }
    if (kind == "redis") {
        return redis_mget(path, {});
    }
    die(fmt::format("unknown kind '{}'", kind));
}

std::uint64_t read_pass(Driver& driver, std::uint64_t pass) {
    const auto order = pass_order(pass);
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < order.size(); at += kBatch) {
        const std::size_t count = std::min(kBatch, order.size() - at);
        sum += driver.read_batch(std::span{order}.subspan(at, count));
    }
    return sum;
}

void serve(Driver& driver) {
    std::uint64_t first = 0;
    std::uint64_t passes = 0;
    while (std::cin >> first >> passes) {
        std::uint64_t sum = 0;
        const double begin = seconds();
        for (std::uint64_t pass = first; pass < first + passes; ++pass) {
            sum += read_pass(driver, pass);
        }
        fmt::print("{:.9f} {}\n", seconds() - begin, sum);
        std::fflush(stdout);
    }
}

void serve_link(const std::string& base_url, std::size_t copies) {
    std::uint64_t first = 0;
    std::uint64_t passes = 0;
    while (std::cin >> first >> passes) {
        const LateRate rate = read_link(base_url, copies, first);
        fmt::print("{:.3f} {:.0f}\n", rate.seconds, rate.bytes_per_second);
        std::fflush(stdout);
    }
}

int run(const std::vector<std::string>& arguments) {
    const std::string& kind = arguments.at(0);
    if (kind == "prepare") {
        prepare(
            arguments.at(1),
            arguments.size() == 2
                ? Workload{}
                : Workload{std::stoul(arguments.at(2)), std::stod(arguments.at(3))});
        return 0;
    }
    const bool link = kind == "link";
    const auto driver = link ? nullptr : make_driver(kind, arguments.at(1));
    fmt::print("ready\n");
    std::fflush(stdout);
    if (link) {
        serve_link(arguments.at(1), std::stoul(arguments.at(2)));
    } else {
        serve(*driver);
    }
    return 0;
}

}  // namespace

}  // namespace stoker::bench

int main(int argc, char** argv) {
    const std::vector<std::string> arguments{argv + 1, argv + argc};
    const std::string kind = arguments.empty() ? "" : arguments.front();
    if (arguments.size() != (kind == "link" ? 3U : 2U) &&
        !(kind == "prepare" && arguments.size() == 4)) {
        stoker::bench::die(
            "usage: stoker-bench prepare FOLDER [SAMPLES MEAN_BYTES] | link URL COPIES | "
            "stoker|mmap|files|redis PATH");
    }
    return stoker::bench::run(arguments);
}
