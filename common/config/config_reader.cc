#include "common/config/config_reader.h"

#include <charconv>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

namespace stoker::config {

// One mapping of the document. Nested readers share the root reader's list of mistakes.
struct ConfigReader::State {
    YAML::Node node;
    std::string path;  // "" for the root; otherwise such as "datasets[0]"
    std::set<std::string, std::less<>> asked{};
    std::shared_ptr<std::vector<std::string>> mistakes;

    [[nodiscard]] std::string path_of(std::string_view key) const {
        return path.empty() ? std::string{key} : fmt::format("{}.{}", path, key);
    }

    // The value of a key, which is then marked as read. Invalid if the key is absent.
    YAML::Node find(std::string_view key) {
        asked.emplace(key);
        const YAML::Node& mapping = node;  // operator[] of a const node does not insert
        return mapping[std::string{key}];
    }

    void note(std::string_view key, std::string_view what) {
        mistakes->push_back(fmt::format("{}: {}", path_of(key), what));
    }
};

ConfigReader::ConfigReader(std::unique_ptr<State> state)
    : state_(std::move(state)) {}

ConfigReader::~ConfigReader() = default;
ConfigReader::ConfigReader(ConfigReader&&) noexcept = default;
ConfigReader& ConfigReader::operator=(ConfigReader&&) noexcept = default;

Result<ConfigReader> ConfigReader::parse(std::string_view text) {
    try {
        YAML::Node node = YAML::Load(std::string{text});
        if (!node.IsMap() && !node.IsNull()) {
            return fail(ErrorCode::kInvalidArgument, "the settings are not a mapping of keys");
        }
        auto state = std::make_unique<State>();
        state->node = node;
        state->mistakes = std::make_shared<std::vector<std::string>>();
        return ConfigReader{std::move(state)};
    } catch (const YAML::Exception& exception) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "line {}, column {}: {}",
                exception.mark.line + 1,
                exception.mark.column + 1,
                exception.msg));
    }
}

bool ConfigReader::has(std::string_view key) const {
    const YAML::Node& mapping = state_->node;
    return mapping.IsMap() && mapping[std::string{key}].IsDefined();
}

template <class T, class Parse>
void ConfigReader::read_scalar(
    std::string_view key, T& out, std::string_view expected, Parse convert) {
    const YAML::Node value = state_->find(key);
    if (!value.IsDefined()) {
        return;
    }
    if (!value.IsScalar()) {
        state_->note(key, fmt::format("must be {}", expected));
        return;
    }
    const auto parsed = convert(value.Scalar());
    if (!parsed) {
        state_->note(key, parsed.error().message);
        return;
    }
    out = *parsed;
}

namespace {

template <class Number>
Result<Number> parse_number(const std::string& text) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "\"{}\" is not a number from {} to {}",
                text,
                std::numeric_limits<Number>::lowest(),
                std::numeric_limits<Number>::max()));
    }
    return number;
}

}  // namespace

void ConfigReader::read(std::string_view key, std::string& out) {
    read_scalar(
        key, out, "a text", [](const std::string& text) { return Result<std::string>{text}; });
}

void ConfigReader::read(std::string_view key, bool& out) {
    read_scalar(key, out, "true or false", [](const std::string& text) -> Result<bool> {
        if (text != "true" && text != "false") {
            return fail(
                ErrorCode::kInvalidArgument, fmt::format("\"{}\" is not true or false", text));
        }
        return text == "true";
    });
}

void ConfigReader::read(std::string_view key, std::uint32_t& out) {
    read_scalar(key, out, "a number", parse_number<std::uint32_t>);
}

void ConfigReader::read(std::string_view key, std::uint64_t& out) {
    read_scalar(key, out, "a number", parse_number<std::uint64_t>);
}

void ConfigReader::read(std::string_view key, double& out) {
    read_scalar(key, out, "a number", parse_number<double>);
}

void ConfigReader::read(std::string_view key, Bytes& out) {
    read_scalar(
        key, out, "a number of bytes", [](const std::string& text) { return parse_bytes(text); });
}

void ConfigReader::read(std::string_view key, Duration& out) {
    read_scalar(key, out, "a time", [](const std::string& text) { return parse_duration(text); });
}

void ConfigReader::read(std::string_view key, std::vector<std::string>& out) {
    const YAML::Node value = state_->find(key);
    if (!value.IsDefined()) {
        return;
    }
    if (!value.IsSequence()) {
        state_->note(key, "must be a list of texts");
        return;
    }
    out.clear();
    for (const auto& entry : value) {
        if (!entry.IsScalar()) {
            state_->note(key, "must be a list of texts");
            return;
        }
        out.push_back(entry.Scalar());
    }
}

void ConfigReader::read(std::string_view key, std::map<std::string, std::string>& out) {
    const YAML::Node value = state_->find(key);
    if (!value.IsDefined() || value.IsNull()) {
        return;
    }
    if (!value.IsMap()) {
        state_->note(key, "must be a mapping of texts");
        return;
    }
    out.clear();
    for (const auto& entry : value) {
        if (!entry.first.IsScalar() || !entry.second.IsScalar()) {
            state_->note(key, "must be a mapping of texts");
            return;
        }
        out[entry.first.Scalar()] = entry.second.Scalar();
    }
}

void ConfigReader::require(std::string_view key, std::string& out) {
    read(key, out);
    const YAML::Node value = state_->find(key);
    if (!value.IsDefined() || (value.IsScalar() && value.Scalar().empty())) {
        state_->note(key, "is required");
    }
}

void ConfigReader::visit_nested(State nested, const std::function<void(ConfigReader&)>& visit) {
    ConfigReader reader{std::make_unique<State>(std::move(nested))};
    visit(reader);
    reader.close();
}

void ConfigReader::section(std::string_view key, const std::function<void(ConfigReader&)>& visit) {
    const YAML::Node value = state_->find(key);
    if (!value.IsDefined() || value.IsNull()) {
        return;
    }
    if (!value.IsMap()) {
        state_->note(key, "must be a mapping of keys");
        return;
    }
    visit_nested({value, state_->path_of(key), {}, state_->mistakes}, visit);
}

void ConfigReader::each(std::string_view key, const std::function<void(ConfigReader&)>& visit) {
    const YAML::Node value = state_->find(key);
    if (!value.IsDefined() || value.IsNull()) {
        return;
    }
    if (!value.IsSequence()) {
        state_->note(key, "must be a list");
        return;
    }
    for (std::size_t index = 0; index < value.size(); ++index) {
        const std::string name = fmt::format("{}[{}]", key, index);
        if (!value[index].IsMap()) {
            state_->note(name, "must be a mapping of keys");
            continue;
        }
        visit_nested({value[index], state_->path_of(name), {}, state_->mistakes}, visit);
    }
}

void ConfigReader::mistake(std::string_view key, std::string_view what) {
    state_->note(key, what);
}

// Reports keys that no caller has read and keys that occur twice.
void ConfigReader::close() {
    if (!state_->node.IsMap()) {
        return;
    }
    std::set<std::string> seen;
    for (const auto& entry : state_->node) {
        const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
        if (!seen.insert(key).second) {
            state_->note(key, "duplicate key");
        } else if (!state_->asked.contains(key)) {
            state_->note(
                key, fmt::format("unknown key; known here: {}", fmt::join(state_->asked, ", ")));
        }
    }
}

Status ConfigReader::finish() {
    close();
    if (!state_->mistakes->empty()) {
        return fail(
            ErrorCode::kInvalidArgument, fmt::format("{}", fmt::join(*state_->mistakes, "\n")));
    }
    return {};
}

}  // namespace stoker::config
