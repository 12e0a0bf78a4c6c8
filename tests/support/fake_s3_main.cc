// stoker-fake-s3: the fake S3 server as a program, for tests in other languages and manual use.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/fake_s3.h"

namespace {

using stoker::test::FakeS3;
using stoker::test::FakeS3Fault;
using stoker::test::FakeS3Options;

constexpr const char* kUsage =
    "stoker-fake-s3 --root DIR [--listen 127.0.0.1:0] [--fault FAULT]... [--page-objects N]\n"
    "               [--access-key ID --secret-key KEY] [--crc32c] [--encryption aws:kms]\n"
    "Serves every file DIR/<bucket>/<key> until SIGTERM. Prints \"listening on http://…\" when it "
    "is ready.\n"
    "FAULT: comma-separated name=value, for example \"operation=get,key=a/*,status=503,times=2\".\n"
    "GET /__stats returns counts; POST /__faults adds faults, one a line; DELETE resets either.\n";

struct Settings {
    FakeS3Options options;
    std::vector<FakeS3Fault> faults;
};

[[noreturn]] void refuse(const std::string& why) {
    std::fprintf(stderr, "%s\n\n%s", why.c_str(), kUsage);
    std::exit(2);
}

void set_option(Settings& settings, std::string_view name, const std::string& value) {
    if (name == "--root") {
        settings.options.directory = value;
    } else if (name == "--listen") {
        const auto colon = value.rfind(':');
        if (colon == std::string::npos) {
            refuse("--listen wants ADDRESS:PORT");
        }
        settings.options.address = value.substr(0, colon);
        settings.options.port =
            static_cast<std::uint16_t>(std::strtoul(value.c_str() + colon + 1, nullptr, 10));
    } else if (name == "--fault") {
        auto fault = stoker::test::parse_fault(value);
        if (!fault) {
            refuse(fault.error().message);
        }
        settings.faults.push_back(*std::move(fault));
    } else if (name == "--encryption") {
        settings.options.encryption = value;
    } else if (name == "--page-objects") {
        settings.options.page_objects = std::strtoul(value.c_str(), nullptr, 10);
    } else if (name == "--access-key" || name == "--secret-key") {
        auto& keys = settings.options.credentials;
        keys = keys.value_or(stoker::sidecar::Credentials{});
        (name == "--access-key" ? keys->access_key_id : keys->secret_access_key) = value;
    } else {
        refuse("unknown option " + std::string{name});
    }
}

Settings parse(int argc, char** argv) {
    Settings settings;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--crc32c") == 0) {
            settings.options.send_crc32c = true;
        } else if (std::strcmp(argv[i], "--help") == 0) {
            std::fputs(kUsage, stdout);
            std::exit(0);
        } else if (i + 1 < argc) {
            set_option(settings, argv[i], argv[i + 1]);
            ++i;
        } else {
            refuse(std::string{argv[i]} + " wants a value");
        }
    }
    if (settings.options.directory.empty()) {
        refuse("--root is needed");
    }
    return settings;
}

}  // namespace

int main(int argc, char** argv) {
    const Settings settings = parse(argc, argv);
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);

    FakeS3 server{settings.options};
    if (!server.listening()) {
        std::fprintf(stderr, "cannot listen on %s\n", settings.options.address.c_str());
        return 1;
    }
    if (const auto& loaded = server.loaded(); !loaded) {
        std::fprintf(stderr, "%s\n", loaded.error().message.c_str());
        return 1;
    }
    for (const FakeS3Fault& fault : settings.faults) {
        server.add_fault(fault);
    }
    std::printf("listening on %s\n", server.endpoint().c_str());
    std::fflush(stdout);
    int signal = 0;
    sigwait(&ends, &signal);
    return 0;
}
