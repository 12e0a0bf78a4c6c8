#include "operator/core/lifecycle/refusal_words.h"

#include <set>

#include <fmt/format.h>

#include "common/base/utf8.h"

namespace stoker::control {

namespace {

constexpr std::size_t kWordsMax = 1024;

// The TrainingJob's field for a field of the Job's pods.
std::string our_field(std::string_view field) {
    constexpr std::string_view kPodTemplate = "spec.template.";
    return field.starts_with(kPodTemplate)
               ? fmt::format("spec.podTemplate.{}", field.substr(kPodTemplate.size()))
               : std::string{field};
}

// Parses: strict decoding error: unknown field "spec.template.spec.x", unknown field "...".
std::set<std::string> unknown_fields(std::string_view message) {
    constexpr std::string_view kMark = "unknown field \"";
    std::set<std::string> fields;
    for (std::size_t at = message.find(kMark); at != std::string_view::npos;
         at = message.find(kMark)) {
        message.remove_prefix(at + kMark.size());
        fields.insert(our_field(message.substr(0, message.find('"'))));
    }
    return fields;
}

}  // namespace

std::string refusal_words(std::string_view message) {
    const std::set<std::string> fields = unknown_fields(message);
    if (fields.empty()) {
        return fmt::format("The API server refuses it: {}", utf8_prefix(message, kWordsMax));
    }
    std::string words;
    for (const std::string& field : fields) {
        words += fmt::format("{}{}: unknown field", words.empty() ? "" : "; ", field);
    }
    return std::string{utf8_prefix(words, kWordsMax)};
}

}  // namespace stoker::control
