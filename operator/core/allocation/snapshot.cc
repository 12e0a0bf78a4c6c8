#include "operator/core/allocation/snapshot.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "operator/api/json_reader.h"
#include "operator/api/json_writer.h"
#include "operator/api/time_format.h"
#include "operator/core/allocation/snapshot_fields.h"

namespace stoker::control {

namespace {

// Rises when a reader of the old one would understand something else, not with every new field.
constexpr std::int64_t kFormat = 1;

constexpr auto kIntegerMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

template <class E>
concept Choice = std::is_enum_v<E>;

template <class N>
concept Count = std::integral<N> && !std::same_as<N, bool>;

// JSON has no infinities, and JSON readers no integers over 2^63: those are texts.
std::string decimal_text(double number) {
    return std::isfinite(number) ? fmt::format("{}", number) : fmt::format("\"{}\"", number);
}

std::string count_text(std::uint64_t count) {
    return count <= kIntegerMax ? fmt::format("{}", count) : fmt::format("\"{}\"", count);
}

// As decimal_text() and count_text() write them, and any other JSON number.
std::string_view unquoted(std::string_view text) {
    return text.size() > 1 && text.front() == '"' ? text.substr(1, text.size() - 2) : text;
}

template <class N>
std::optional<N> read_number(std::string_view text) {
    N number{};
    const std::string_view digits = unquoted(text);
    const char* end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, number);
    return read.ec == std::errc{} && read.ptr == end ? std::optional(number) : std::nullopt;
}

std::string time_text(WallTime time) {
    const auto whole = std::chrono::floor<std::chrono::seconds>(time);
    std::string text = format_time(whole);
    text.pop_back();
    return fmt::format("{}.{:09}Z", text, (time - whole).count());
}

class Writer {
public:
    template <HasFields T>
    static JsonWriter write(const T& item) {
        Writer writer;
        for_each_field(item, [&](const char* name, const auto& value) { writer.add(name, value); });
        return std::move(writer.json_);
    }

private:
    void add(const char* name, const std::string& text) { json_.text(name, text); }

    void add(const char* name, bool flag) { json_.flag(name, flag); }

    void add(const char* name, double number) { json_.raw(name, RawJson{decimal_text(number)}); }

    void add(const char* name, Bytes bytes) { json_.raw(name, RawJson{count_text(bytes.count())}); }

    void add(const char* name, WallTime time) { json_.text(name, time_text(time)); }

    template <Count N>
    void add(const char* name, N count) {
        json_.raw(name, RawJson{fmt::format("{}", count)});
    }

    template <Choice E>
    void add(const char* name, E choice) {
        json_.text(name, std::string{kTexts<E>.at(static_cast<std::size_t>(choice))});
    }

    template <HasFields T>
    void add(const char* name, const T& item) {
        json_.required_object(name, write(item));
    }

    template <class T>
    void add(const char* name, const std::optional<T>& value) {
        if (value) {
            add(name, *value);
        }
    }

    void add(const char* name, const std::vector<std::string>& texts) { json_.texts(name, texts); }

    void add(const char* name, const std::vector<float>& numbers) {
        for (const float number : numbers) {
            const std::string text = fmt::format("{}", number);
            json_.append_raw(name, RawJson{std::isfinite(number) ? text : '"' + text + '"'});
        }
    }

    void add(const char* name, const std::vector<Bytes>& amounts) {
        for (const Bytes bytes : amounts) {
            json_.append_raw(name, RawJson{count_text(bytes.count())});
        }
    }

    template <HasFields T>
    void add(const char* name, const std::vector<T>& items) {
        json_.list(name, items, [](const T& item) { return write(item); });
    }

    void add(const char* name, const std::map<std::string, Bytes>& amounts) {
        JsonWriter object;
        for (const auto& [key, bytes] : amounts) {
            object.raw(key, RawJson{count_text(bytes.count())});
        }
        json_.object(name, object);
    }

    JsonWriter json_;
};

class Reader {
public:
    explicit Reader(const JsonReader& json)
        : json_(json) {}

    template <HasFields T>
    void read_into(T& item) const {
        for_each_field(item, [this](const char* name, auto& value) { read(name, value); });
    }

private:
    void read(const char* name, std::string& text) const { text = json_.text(name, text); }

    void read(const char* name, bool& flag) const { flag = json_.flag(name, flag); }

    void read(const char* name, double& number) const { read_as(name, json_.raw(name), number); }

    void read(const char* name, Bytes& bytes) const {
        std::uint64_t count = bytes.count();
        read_as(name, json_.raw(name), count);
        bytes = Bytes{count};
    }

    void read(const char* name, WallTime& time) const {
        time = json_.maybe_time(name).value_or(time);
    }

    template <Count N>
    void read(const char* name, N& count) const {
        read_as(name, json_.raw(name), count);
    }

    template <Choice E>
    void read(const char* name, E& choice) const {
        const std::optional<std::string> text = json_.maybe_text(name);
        if (!text) {
            return;
        }
        const auto found = std::ranges::find(kTexts<E>, *text);
        if (found == kTexts<E>.end()) {
            json_.complain(name, fmt::format("'{}' is not a choice", *text));
        } else {
            choice = static_cast<E>(found - kTexts<E>.begin());
        }
    }

    template <HasFields T>
    void read(const char* name, T& item) const {
        Reader{json_.object(name)}.read_into(item);
    }

    template <class T>
    void read(const char* name, std::optional<T>& value) const {
        if (!json_.raw(name).value().empty()) {
            read(name, value.emplace());
        }
    }

    void read(const char* name, std::vector<std::string>& texts) const {
        texts = json_.texts(name);
    }

    void read(const char* name, std::vector<float>& numbers) const {
        for (const RawJson& item : numbers_of(name)) {
            read_as(name, item, numbers.emplace_back());
        }
    }

    void read(const char* name, std::vector<Bytes>& amounts) const {
        for (const RawJson& item : numbers_of(name)) {
            std::uint64_t count = 0;
            read_as(name, item, count);
            amounts.emplace_back(count);
        }
    }

    template <HasFields T>
    void read(const char* name, std::vector<T>& items) const {
        json_.each(name, [&items](const JsonReader& item) {
            Reader{item}.read_into(items.emplace_back());
        });
    }

    void read(const char* name, std::map<std::string, Bytes>& amounts) const {
        for (const auto& [key, text] : json_.quantity_map(name)) {
            std::uint64_t count = 0;
            read_as(name, RawJson{text}, count);
            amounts[key] = Bytes{count};
        }
    }

    // The items of a list in which no text has a comma. Anything else is one item that is no
    // number.
    [[nodiscard]] std::vector<RawJson> numbers_of(const char* name) const {
        std::string text = json_.raw(name).value();
        std::vector<RawJson> result;
        if (text.size() > 2 && text.front() == '[') {
            text = text.substr(1, text.size() - 2);
        } else if (text == "[]") {
            text.clear();
        }
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = std::min(text.find(',', at), text.size());
            result.emplace_back(text.substr(at, end - at));
            at = end + 1;
        }
        return result;
    }

    // Absent keeps what is there.
    template <class N>
    void read_as(const char* name, const RawJson& text, N& number) const {
        if (text.value().empty()) {
            return;
        }
        if (const std::optional<N> read = read_number<N>(text.value())) {
            number = *read;
        } else {
            json_.complain(name, fmt::format("{} is no number that fits", text.value()));
        }
    }

    const JsonReader& json_;
};

}  // namespace

std::string print_snapshot(const AllocationSnapshot& snapshot) {
    JsonWriter json;
    json.number("format", kFormat)
        .text("version", snapshot.version)
        .text("servedAt", time_text(snapshot.served_at))
        .text("decidedAt", time_text(snapshot.decided_at))
        .object("view", Writer::write(snapshot.view))
        .object("plan", Writer::write(snapshot.plan));
    return json.serialize();
}

Result<AllocationSnapshot> parse_snapshot(std::string_view text) {
    AllocationSnapshot result;
    std::int64_t format = 0;
    STOKER_TRY_VOID(read_json(text, [&](const JsonReader& root) {
        format = root.integer("format");
        result.version = root.text("version");
        if (format != kFormat) {
            return;
        }
        result.served_at = root.maybe_time("servedAt").value_or(result.served_at);
        result.decided_at = root.maybe_time("decidedAt").value_or(result.decided_at);
        Reader{root.object("view")}.read_into(result.view);
        Reader{root.object("plan")}.read_into(result.plan);
    }));
    if (format != kFormat) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "the operator (version {}) speaks format {} of the allocation, this program "
                "format {}",
                result.version.empty() ? "unknown" : result.version,
                format,
                kFormat));
    }
    return result;
}

}  // namespace stoker::control
