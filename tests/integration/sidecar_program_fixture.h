#pragma once

#include <chrono>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "tests/support/sample_client.h"
#include "tests/support/sidecar_process.h"
#include "tests/support/temp_folder.h"

namespace stoker::test {

// Real programs stoker-sidecar that share one node directory, each with the dataset "train" and,
// below `folder`, a socket NAME.sock and a log NAME.log. The test starts each program.
class SidecarProgramTest : public testing::Test {
protected:
    static constexpr std::chrono::seconds kPatience{60};  // only ends hung tests

    // `origin`: a YAML flow mapping; `more`: further lines of the dataset.
    [[nodiscard]] std::unique_ptr<SidecarProcess> run_with_origin(
        const std::string& origin, const std::string& name, const std::string& more) const {
        const std::string path = folder.path() + "/" + name + ".yaml";
        std::ofstream{path} << fmt::format(
            "socket: {}\n"
            "datasets:\n"
            "- name: train\n"
            "  origin: {}\n"
            "  directory: {}\n"
            "  reservedFree: 0\n{}",
            socket_of(name),
            origin,
            node_directory,
            more);
        return std::make_unique<SidecarProcess>(
            STOKER_SIDECAR_BINARY, path, folder.path() + "/" + name + ".log");
    }

    [[nodiscard]] std::string socket_of(const std::string& name) const {
        return folder.path() + "/" + name + ".sock";
    }

    [[nodiscard]] std::string log_of(const std::string& name) const {
        std::ostringstream text;
        text << std::ifstream{folder.path() + "/" + name + ".log"}.rdbuf();
        return text.str();
    }

    // Opens a session; waits until the program accepts it.
    [[nodiscard]] SampleClient connect(const std::string& name, std::uint64_t stream = 0) const {
        const SystemClock clock;
        const TimePoint end = clock.now() + kPatience;
        for (;;) {
            SampleClient client{socket_of(name)};
            if (client.is_connected() && client.hello("train", stream)) {
                return client;
            }
            if (clock.now() > end) {
                ADD_FAILURE() << "no sidecar: " << log_of(name);
                return client;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{5});  // between two polls
        }
    }

    TempFolder folder;
    std::string node_directory = folder.path() + "/node";
};

}  // namespace stoker::test
