#include "cli/kubectl_stoker/complete.h"

#include "cli/kubectl_stoker/options.h"

namespace stoker::cli {

namespace {

std::vector<std::string> candidates(
    const std::vector<std::string_view>& words,
    const std::function<std::vector<std::string>()>& jobs) {
    if (words.size() < 2) {
        std::vector<std::string> names = command_names();
        names.emplace_back("version");
        return names;
    }
    const std::string_view command = words.front();
    if (words.back().starts_with('-')) {
        return flag_names(command);
    }
    const bool wants_job = command == "why" || command == "report" || command == "advise" ||
                           (command == "what-if" && words[words.size() - 2] == "--delete");
    std::vector<std::string> result;
    if (wants_job) {
        for (const std::string& job : jobs()) {
            result.push_back("tj/" + job);
        }
    }
    return result;
}

}  // namespace

std::string complete(
    const std::vector<std::string_view>& words,
    const std::function<std::vector<std::string>()>& jobs) {
    const std::string_view begun = words.empty() ? "" : words.back();
    std::string text;
    for (const std::string& candidate : candidates(words, jobs)) {
        if (candidate.starts_with(begun)) {
            text += candidate + '\n';
        }
    }
    return text + ":4\n";
}

}  // namespace stoker::cli
