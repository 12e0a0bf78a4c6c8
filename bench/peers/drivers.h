#pragma once

#include "bench/driver.h"

namespace stoker::bench {

// One multi-get per batch. Stores the samples first.
std::unique_ptr<Driver> memcached_gets(const std::string& socket_path, const Workload& workload);

// One kept connection, the requests of a batch pipelined; the server's root holds sample_key()s.
std::unique_ptr<Driver> nginx_files(const std::string& socket_path, std::size_t count);

}  // namespace stoker::bench
