#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "bench/workload.h"

namespace stoker::bench {

// One way to read the samples. read_batch() reads the samples of `ids` and touches every byte.
class Driver {
public:
    virtual ~Driver() = default;

    // Sum of touch() over the batch; all drivers must return the same for the same ids.
    virtual std::uint64_t read_batch(std::span<const std::uint64_t> ids) = 0;
};

// Each driver ends the program with a message if it cannot start or read.
std::unique_ptr<Driver> stoker_client(const std::string& node_directory);
std::unique_ptr<Driver> mapped_file(const std::string& flat_file);
std::unique_ptr<Driver> one_file_a_sample(const std::string& folder, std::size_t count);

// Stores the samples in Redis first.
std::unique_ptr<Driver> redis_mget(const std::string& socket_path, const Workload& workload);

struct LateRate {
    double seconds = 0;           // duration of the whole pass
    double bytes_per_second = 0;  // mean rate from the third second on
};

// Reads all objects below `base_url` once, in the order of `pass`. Signs with AWS_ACCESS_KEY_ID and
// AWS_SECRET_ACCESS_KEY.
LateRate read_link(const std::string& base_url, std::size_t copies, std::uint64_t pass);

[[noreturn]] void die(const std::string& message);

}  // namespace stoker::bench
