#include "common/metrics/process_metrics.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

#include "common/base/read_file.h"

namespace stoker::metrics {

namespace {

double seconds_of(const timeval& time) {
    constexpr double kMicro = 1e-6;
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * kMicro;
}

// Unix time at which this process began: proc(5), field 22 of /proc/self/stat, in ticks since boot.
double start_time() {
    const auto stat = read_file("/proc/self/stat");
    const auto uptime = read_file("/proc/uptime");
    if (!stat || !uptime) {
        return 0;
    }
    // The second field, the name in parentheses, may contain blanks.
    std::istringstream fields(stat->substr(stat->rfind(')') + 1));
    constexpr int kStartTime = 22;
    std::string field;
    for (int at = 3; at <= kStartTime; ++at) {
        fields >> field;
    }
    double up = 0;
    std::istringstream(*uptime) >> up;
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    return now.count() - up + std::stod(field) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

ProcessMetrics::ProcessMetrics(Registry& registry)
    : cpu_(registry.counter(
          "process_cpu_seconds_total", "Processor time of this process, user and system.")),
      resident_(registry.gauge(
          "process_resident_memory_bytes",
          "Resident memory of this process, mapped files included.")),
      anonymous_(registry.gauge(
          "stoker_process_anonymous_memory_bytes",
          "Resident memory of this process without files; grows in a leak.")),
      virtual_(registry.gauge("process_virtual_memory_bytes", "Virtual memory of this process.")),
      threads_(registry.gauge("process_threads", "Threads of this process.")),
      open_fds_(registry.gauge("process_open_fds", "Open file descriptors of this process.")),
      max_fds_(
          registry.gauge("process_max_fds", "File descriptors that this process may have open.")) {
    registry.gauge_family("stoker_build_info", "1, with the version.", {"version"})
        .with({STOKER_VERSION})
        ->set(1);
    registry.gauge("process_start_time_seconds", "Start of this process, as Unix time.")
        .set(start_time());
}

void ProcessMetrics::collect() {
    const std::lock_guard lock(mutex_);
    rusage use{};
    if (::getrusage(RUSAGE_SELF, &use) == 0) {
        const double total = seconds_of(use.ru_utime) + seconds_of(use.ru_stime);
        cpu_.add(std::max(total - cpu_.value(), 0.0));
    }
    read_status();
    count_descriptors();
}

void ProcessMetrics::read_status() {
    const auto status = read_file("/proc/self/status");
    if (!status) {
        return;
    }
    constexpr double kKib = 1024;
    std::istringstream lines(*status);
    std::string line;
    while (std::getline(lines, line)) {
        std::istringstream words(line);
        std::string name;
        double value = 0;
        if (!(words >> name >> value)) {
            continue;
        }
        if (name == "VmRSS:") {
            resident_.set(value * kKib);
        } else if (name == "RssAnon:") {
            anonymous_.set(value * kKib);
        } else if (name == "VmSize:") {
            virtual_.set(value * kKib);
        } else if (name == "Threads:") {
            threads_.set(value);
        }
    }
}

void ProcessMetrics::count_descriptors() {
    std::error_code error;
    const std::filesystem::directory_iterator entries{"/proc/self/fd", error};
    if (!error) {
        // Does not count the descriptor that this loop has opened.
        open_fds_.set(static_cast<double>(std::distance(begin(entries), end(entries)) - 1));
    }
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        max_fds_.set(static_cast<double>(limit.rlim_cur));
    }
}

}  // namespace stoker::metrics
