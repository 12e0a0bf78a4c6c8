// stoker-bench-listing FOLDER [SAMPLES]     memory and time from a listing to an open manifest
//
// Lists SAMPLES (default 10,000,000) objects with names and ETags as ImageNet has them in S3,
// writes their manifest into FOLDER, frees the listing and opens the manifest. Prints a JSON object.
// `bytes_per_sample`: peak of anonymous memory during these steps; file pages are not counted,
// since the kernel may drop them. Exits with 1 above 120 bytes a sample, or if opening takes longer
// than a second per 10,000,000 samples.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include <fmt/core.h>

#include "bench/workload.h"
#include "common/domain/manifest_writer.h"
#include "sidecar/device/posix_device.h"
#include "sidecar/store/manifest_file.h"

namespace stoker::bench {

namespace {

constexpr double kBytesBar = 120;
constexpr double kOpenBar = 1e-7;  // seconds a sample

double anonymous_bytes() {
    std::ifstream status{"/proc/self/status"};
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("RssAnon:")) {
            return std::strtod(line.c_str() + sizeof "RssAnon:", nullptr) * 1024;
        }
    }
    return 0;
}

domain::Listing make_listing(std::uint64_t samples) {
    domain::Listing listing;
    for (std::uint64_t i = 0; i < samples; ++i) {
        const std::uint64_t folder = i / 1300;
        const auto added = listing.add(
            fmt::format("train/n{:08}/n{:08}_{:08}.JPEG", folder, folder, i),
            110'000 + i % 1000,
            fmt::format("{:016x}{:016x}", i * 0x9E3779B97F4A7C15ULL, i));
        if (!added) {
            fmt::print(stderr, "{}\n", added.error().message);
            std::exit(1);
        }
    }
    return listing;
}

int run(const std::string& folder, std::uint64_t samples) {
    const double base = anonymous_bytes();
    const auto device = sidecar::make_posix_device();
    auto listing = make_listing(samples);
    double most = anonymous_bytes();
    double start = seconds();
    auto writer = domain::ManifestWriter::create(std::move(listing));
    if (!writer) {
        fmt::print(stderr, "{}\n", writer.error().message);
        return 1;
    }
    const domain::RevisionId revision = writer->revision();
    const double file_bytes = static_cast<double>(writer->file_bytes());
    if (const auto stored = sidecar::store_manifest(*device, folder, *writer); !stored) {
        fmt::print(stderr, "{}\n", stored.error().message);
        return 1;
    }
    const double write_seconds = seconds() - start;
    most = std::max(most, anonymous_bytes());
    writer = fail(ErrorCode::kCancelled, "no longer needed");
    start = seconds();
    const auto opened = sidecar::MappedManifest::open(*device, folder, revision);
    const double open_seconds = seconds() - start;
    const auto count = static_cast<double>(samples);
    const double bytes = (most - base) / count;
    fmt::print(
        R"({{"samples": {}, "bytes_per_sample": {:.1f}, "write_seconds": {:.2f}, "file_bytes_per_sample": {:.1f}, "open_seconds": {:.3f}}})"
        "\n",
        samples,
        bytes,
        write_seconds,
        file_bytes / count,
        open_seconds);
    return opened && bytes <= kBytesBar && open_seconds <= kOpenBar * count ? 0 : 1;
}

}  // namespace

}  // namespace stoker::bench

int main(int argc, char** argv) {
    if (argc < 2) {
        fmt::print(stderr, "usage: stoker-bench-listing FOLDER [SAMPLES]\n");
        return 2;
    }
    return stoker::bench::run(argv[1], argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 10'000'000);
}
