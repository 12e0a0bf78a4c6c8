// stoker-bench-peers KIND PATH SAMPLES MEAN_BYTES FIRST_PASS
//
// Prints `ready`; then for each line `SECONDS` on stdin reads batches in random order for that
// time, continues where the last line ended, and prints `SAMPLES SECONDS SUM`. FIRST_PASS chooses
// the order. The line `0` reads pass 0 as a whole: all kinds must print the same SUM.
// KIND: stoker (a node directory), files (a folder), memcached, nginx, redis (a Unix socket).
//
// bench/peers/run.py starts one process for each client.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string_view>

#include <fmt/core.h>

#include "bench/peers/drivers.h"

namespace stoker::bench {

namespace {

std::unique_ptr<Driver> make_driver(
    std::string_view kind, const std::string& path, const Workload& workload) {
    if (kind == "stoker") {
        return stoker_client(path);
    }
    if (kind == "files") {
        return one_file_a_sample(path, workload.count);
    }
    if (kind == "memcached") {
        return memcached_gets(path, workload);
    }
    if (kind == "nginx") {
        return nginx_files(path, workload.count);
    }
    if (kind == "redis") {
        return redis_mget(path, workload);
    }
    die(fmt::format("unknown kind '{}'", kind));
}

// Endless passes over the samples, from FIRST_PASS on.
class Order {
public:
    Order(std::uint64_t first_pass, std::size_t count)
        : pass_(first_pass),
          ids_(pass_order(first_pass, count)) {}

    // At most kBatch samples; empty once at the end of each pass.
    std::span<const std::uint64_t> next() {
        const std::size_t count = std::min(kBatch, ids_.size() - at_);
        const auto batch = std::span{ids_}.subspan(at_, count);
        at_ += count;
        return batch;
    }

    void begin_next_pass() {
        ids_ = pass_order(++pass_, ids_.size());
        at_ = 0;
    }

private:
    std::uint64_t pass_;
    std::vector<std::uint64_t> ids_;
    std::size_t at_ = 0;
};

struct Turn {
    std::size_t samples = 0;
    double seconds = 0;
    std::uint64_t sum = 0;
};

// Reads until `length` seconds have passed; 0: until the end of the pass.
Turn read_turn(Driver& driver, Order& order, double length) {
    Turn turn;
    const double begin = seconds();
    do {
        const auto batch = order.next();
        if (batch.empty()) {
            if (length == 0) {
                break;
            }
            order.begin_next_pass();
            continue;
        }
        turn.sum += driver.read_batch(batch);
        turn.samples += batch.size();
    } while (length == 0 || seconds() - begin < length);
    turn.seconds = seconds() - begin;
    return turn;
}

void serve(Driver& driver, std::size_t count, std::uint64_t first_pass) {
    fmt::print("ready\n");
    std::fflush(stdout);
    Order order{first_pass, count};
    double length = 0;
    while (std::cin >> length) {
        Order whole{0, count};
        const Turn turn = read_turn(driver, length == 0 ? whole : order, length);
        fmt::print("{} {:.9f} {}\n", turn.samples, turn.seconds, turn.sum);
        std::fflush(stdout);
    }
}

}  // namespace

}  // namespace stoker::bench

int main(int argc, char** argv) {
    using stoker::bench::Workload;
    const std::vector<std::string> arguments{argv + 1, argv + argc};
    if (arguments.size() != 5) {
        stoker::bench::die(
            "usage: stoker-bench-peers stoker|files|memcached|nginx|redis PATH SAMPLES MEAN_BYTES "
            "FIRST_PASS");
    }
    const Workload workload{std::stoul(arguments[2]), std::stod(arguments[3])};
    const auto driver = stoker::bench::make_driver(arguments[0], arguments[1], workload);
    stoker::bench::serve(*driver, workload.count, std::stoull(arguments[4]));
    return 0;
}
