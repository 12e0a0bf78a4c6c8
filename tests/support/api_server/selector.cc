#include "tests/support/api_server/selector.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <cpprest/json.h>

namespace stoker::test {

namespace {

using control::find_at;
using control::string_at;

std::string trim(std::string_view text) {
    while (!text.empty() && text.front() == ' ') {
        text.remove_prefix(1);
    }
    while (!text.empty() && text.back() == ' ') {
        text.remove_suffix(1);
    }
    return std::string(text);
}

// Splits at commas that are not inside brackets.
std::vector<std::string> split_terms(std::string_view text) {
    std::vector<std::string> terms;
    int depth = 0;
    std::string term;
    for (const char c : text) {
        depth += c == '(' ? 1 : (c == ')' ? -1 : 0);
        if (c == ',' && depth == 0) {
            terms.push_back(trim(term));
            term.clear();
        } else {
            term += c;
        }
    }
    if (!trim(term).empty()) {
        terms.push_back(trim(term));
    }
    return terms;
}

std::optional<std::string> label_of(const web::json::value& object, const std::string& name) {
    const auto* found = find_at(object, {"metadata", "labels", name});
    return found != nullptr && found->is_string() ? std::optional(found->as_string())
                                                  : std::nullopt;
}

bool is_among(const std::string& value, std::string_view brackets) {
    const auto open = brackets.find('(');
    const auto close = brackets.rfind(')');
    const auto values = split_terms(brackets.substr(open + 1, close - open - 1));
    return std::find(values.begin(), values.end(), value) != values.end();
}

bool matches_label(const std::string& term, const web::json::value& object) {
    if (const auto at = term.find(" notin "); at != std::string::npos) {
        const auto label = label_of(object, trim(term.substr(0, at)));
        return !label || !is_among(*label, term);
    }
    if (const auto at = term.find(" in "); at != std::string::npos) {
        const auto label = label_of(object, trim(term.substr(0, at)));
        return label && is_among(*label, term);
    }
    if (const auto at = term.find("!="); at != std::string::npos) {
        return label_of(object, term.substr(0, at)) != term.substr(at + 2);
    }
    if (const auto at = term.find('='); at != std::string::npos) {
        const auto value = term.find_first_not_of('=', at);
        return label_of(object, term.substr(0, at)) ==
               (value == std::string::npos ? "" : term.substr(value));
    }
    return term.starts_with('!') ? !label_of(object, term.substr(1))
                                 : label_of(object, term).has_value();
}

std::string field_of(const web::json::value& object, std::string_view path) {
    const auto* at = &object;
    while (!path.empty()) {
        const auto dot = std::min(path.find('.'), path.size());
        at = find_at(*at, {path.substr(0, dot)});
        if (at == nullptr) {
            return "";
        }
        path.remove_prefix(std::min(dot + 1, path.size()));
    }
    return at->is_string() ? at->as_string() : at->serialize();
}

bool matches_field(const std::string& term, const web::json::value& object) {
    const bool negated = term.find("!=") != std::string::npos;
    const auto at = term.find(negated ? "!=" : "=");
    const auto value = std::min(term.find_first_not_of("!=", at), term.size());
    return (field_of(object, std::string_view(term).substr(0, at)) == term.substr(value)) !=
           negated;
}

}  // namespace

bool matches(const Selector& selector, const web::json::value& object) {
    if (!selector.ns.empty() && string_at(object, {"metadata", "namespace"}) != selector.ns) {
        return false;
    }
    const auto labels = split_terms(selector.labels);
    const auto fields = split_terms(selector.fields);
    return std::all_of(
               labels.begin(),
               labels.end(),
               [&](const std::string& term) { return matches_label(term, object); }) &&
           std::all_of(fields.begin(), fields.end(), [&](const std::string& term) {
               return matches_field(term, object);
           });
}

}  // namespace stoker::test
