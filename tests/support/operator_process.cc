#include "tests/support/operator_process.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "common/base/check.h"

namespace stoker::test {

OperatorProcess::OperatorProcess(
    const Options& options, const testing::TestCertificates& certificates) {
    write_files(options, certificates);
    start(options);
}

void OperatorProcess::write_files(
    const Options& options, const testing::TestCertificates& certificates) {
    const std::string& folder = folder_.path();
    std::filesystem::create_directories(folder + "/tls");
    testing::write_certificates(certificates, folder + "/tls");
    std::ofstream file(folder + "/operator.yaml");
    file << options.settings(folder);
    STOKER_CHECK(file.good(), "writing the operator's settings");
}

void OperatorProcess::start(const Options& options) {
    std::vector<std::string> words{
        options.program,
        "--config=" + folder_.path() + "/operator.yaml",
        "--api-server=" + options.api_server};
    words.insert(words.end(), options.flags.begin(), options.flags.end());
    std::vector<char*> arguments;
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    std::string pod = "POD_NAME=" + options.pod_name;
    std::string ns = "POD_NAMESPACE=stoker-system";
    std::vector<char*> environment{pod.data(), ns.data(), nullptr};
    const std::string log_file = folder_.path() + "/log";
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(
        &actions, STDERR_FILENO, log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int failed = posix_spawn(
        &pid_, options.program.c_str(), &actions, nullptr, arguments.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    STOKER_CHECK(failed == 0, "starting the operator");
}

std::string OperatorProcess::log() const {
    std::ifstream file(folder_.path() + "/log");
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::uint16_t OperatorProcess::logged_port(const std::string& message) const {
    std::istringstream lines(log());
    for (std::string line; std::getline(lines, line);) {
        const std::size_t key = line.find("\"port\":");
        if (line.find(message) != std::string::npos && key != std::string::npos) {
            return static_cast<std::uint16_t>(std::stoul(line.substr(key + 7)));
        }
    }
    return 0;
}

void OperatorProcess::signal(int number) const {
    if (pid_ > 0) {
        ::kill(pid_, number);
    }
}

std::optional<int> OperatorProcess::take_exit() {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) {
        return std::nullopt;
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void OperatorProcess::kill() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }
}

}  // namespace stoker::test
