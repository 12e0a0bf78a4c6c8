// stoker-fake-operator: the fake operator as a program, for tests in other languages.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include <google/protobuf/util/json_util.h>

#include "tests/support/fake_operator.h"

namespace {

using stoker::testing::FakeOperator;

constexpr const char* kUsage =
    "stoker-fake-operator --ca FILE --grant UID=BYTES --fill BYTES_PER_SECOND --probe ID=BATCHES\n"
    "  --peers NODES\n"
    "--fill: grants given before it also order to fetch without a reader. --peers: sidecars on N\n"
    "nodes fetch from each other.\n"
    "Grants, requests the measurement, and prints what it receives, one JSON object a line, until\n"
    "SIGTERM. Writes its CA to FILE and prints \"listening on HOST:PORT\" when it is ready.\n";

[[noreturn]] void refuse(const std::string& why) {
    std::fprintf(stderr, "%s\n\n%s", why.c_str(), kUsage);
    std::exit(2);
}

struct Settings {
    std::string ca_file;
    std::size_t peers = 0;  // nodes that share samples; 0: none
    stoker::control::v1::OperatorMessage told;
};

void set_option(Settings& settings, std::string_view name, const std::string& value) {
    const std::size_t at = std::min(value.find('='), value.size());
    const std::string left = value.substr(0, at);
    const char* right = value.c_str() + std::min(at + 1, value.size());
    if (name == "--ca") {
        settings.ca_file = value;
    } else if (name == "--grant") {
        auto& grant = *settings.told.add_grants();
        grant.set_dataset_uid(left);
        grant.set_resident_bytes(std::strtoull(right, nullptr, 10));
        grant.set_valid_seconds(600);
        grant.set_reason("Granted");
    } else if (name == "--fill") {
        for (auto& grant : *settings.told.mutable_grants()) {
            grant.mutable_fill()->set_origin_bytes_per_second(
                std::strtoull(value.c_str(), nullptr, 10));
        }
    } else if (name == "--probe") {
        settings.told.mutable_probe()->set_id(std::strtoull(left.c_str(), nullptr, 10));
        settings.told.mutable_probe()->set_batches(
            static_cast<std::uint32_t>(std::strtoul(right, nullptr, 10)));
    } else if (name == "--peers") {
        settings.peers = std::strtoul(value.c_str(), nullptr, 10);
    } else {
        refuse("unknown option " + std::string{name});
    }
}

}  // namespace

int main(int argc, char** argv) {
    Settings settings;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) {
            refuse(std::string{argv[i]} + " wants a value");
        }
        set_option(settings, argv[i], argv[i + 1]);
    }
    if (settings.ca_file.empty()) {
        refuse("--ca is needed");
    }
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);

    FakeOperator control;
    if (settings.peers > 0) {
        control.gather_peers(settings.peers);
    }
    control.tell(settings.told);
    control.on_message([](const stoker::control::v1::SidecarMessage& message) {
        std::string line;
        if (google::protobuf::util::MessageToJsonString(message, &line).ok()) {
            std::printf("%s\n", line.c_str());
            std::fflush(stdout);
        }
    });
    std::ofstream{settings.ca_file} << control.ca();
    std::printf("listening on %s\n", control.endpoint().c_str());
    std::fflush(stdout);
    int signal = 0;
    sigwait(&ends, &signal);
    return 0;
}
