#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/driver.h"
#include "bench/workload.h"
#include "client/src/core/mapped_file.h"
#include "client/src/core/node_reader.h"
#include "common/base/unique_fd.h"

namespace stoker::bench {

namespace {

// The revision in the file name of a node directory's only manifest.
domain::RevisionId find_revision(const std::string& directory) {
    constexpr std::string_view kPrefix = "manifest.";
    for (const auto& entry : std::filesystem::directory_iterator{directory}) {
        const std::string name = entry.path().filename();
        if (name.starts_with(kPrefix)) {
            return domain::RevisionId{std::stoull(name.substr(kPrefix.size()), nullptr, 16)};
        }
    }
    die(fmt::format("{} has no manifest", directory));
}

class StokerClient final : public Driver {
public:
    explicit StokerClient(const std::string& directory) {
        auto reader = client::NodeReader::open({directory, find_revision(directory)});
        if (!reader) {
            die(reader.error().message);
        }
        reader_ = *std::move(reader);
    }

    std::uint64_t read_batch(std::span<const std::uint64_t> ids) override {
        std::uint64_t sum = 0;
        for (const std::uint64_t id : ids) {
            const auto view = reader_->read(domain::SampleId{id});
            if (!view) {
                die(fmt::format("sample {} is not in the node directory", id));
            }
            sum += touch(view->bytes);
        }
        return sum;
    }

private:
    std::unique_ptr<client::NodeReader> reader_;
};

class MappedFlatFile final : public Driver {
public:
    explicit MappedFlatFile(const std::string& path) {
        auto file = client::MappedFile::open(path);
        if (!file) {
            die(file.error().message);
        }
        file_ = *std::move(file);
        for (const std::uint64_t size : sample_sizes()) {
            samples_.push_back(file_.bytes().subspan(offset_, size));
            offset_ += size;
        }
    }

    std::uint64_t read_batch(std::span<const std::uint64_t> ids) override {
        std::uint64_t sum = 0;
        for (const std::uint64_t id : ids) {
            sum += touch(samples_[id]);
        }
        return sum;
    }

private:
    client::MappedFile file_;
    std::vector<std::span<const std::byte>> samples_;
    std::uint64_t offset_ = 0;
};

class OneFileASample final : public Driver {
public:
    OneFileASample(const std::string& folder, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            paths_.push_back(fmt::format("{}/{}", folder, sample_key(i)));
        }
    }

    std::uint64_t read_batch(std::span<const std::uint64_t> ids) override {
        std::uint64_t sum = 0;
        for (const std::uint64_t id : ids) {
            const UniqueFd fd{::open(paths_[id].c_str(), O_RDONLY | O_CLOEXEC)};

            struct stat status {};

            if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
                die(fmt::format("cannot open {}", paths_[id]));
            }
            const auto size = static_cast<std::size_t>(status.st_size);
            buffer_.resize(std::max(buffer_.size(), size));
            if (::pread(fd.get(), buffer_.data(), size, 0) != status.st_size) {
                die(fmt::format("cannot read {}", paths_[id]));
            }
            sum += touch(std::span{buffer_}.first(size));
        }
        return sum;
    }

private:
    std::vector<std::string> paths_;
    std::vector<std::byte> buffer_;
};

}  // namespace

void die(const std::string& message) {
    fmt::print(stderr, "stoker-bench: {}\n", message);
    std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
}

std::unique_ptr<Driver> stoker_client(const std::string& node_directory) {
    return std::make_unique<StokerClient>(node_directory);
}

std::unique_ptr<Driver> mapped_file(const std::string& flat_file) {
    return std::make_unique<MappedFlatFile>(flat_file);
}

std::unique_ptr<Driver> one_file_a_sample(const std::string& folder, std::size_t count) {
    return std::make_unique<OneFileASample>(folder, count);
}

}  // namespace stoker::bench
