#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/api/choices.h"
#include "operator/api/condition.h"
#include "operator/api/meta.h"

namespace web::json {
class value;
}

// Reads one JSON object of an API object, field by field, with the path in every complaint.
namespace stoker::control {

// What a whole document gathers while it is read.
struct ReadLog {
    std::vector<std::string> errors;  // "spec.trainer.image: must be a text"
    std::set<std::string>
        fields;  // with `recording`: every path that is read; "spec.datasets[].name"
    bool recording = false;
};

// A field that is absent or null reads as its fallback; one of the wrong type reads as its fallback
// and leaves an error in the log. So parsing goes on to the end and reports everything at once, and
// it never throws. With `log.recording` the document is empty, every object and list is entered
// once, and the log learns which fields the parser knows; that is how tests/contract compares the
// parsers with the CRDs. Not thread-safe; the document and the log must outlive it.
class JsonReader {
public:
    JsonReader(const web::json::value* value, std::string path, ReadLog& log);

    // False for an absent object. True while recording.
    [[nodiscard]] bool present() const { return log_->recording || value_ != nullptr; }

    [[nodiscard]] JsonReader object(const std::string& name) const;
    [[nodiscard]] std::string text(const std::string& name, std::string fallback = "") const;
    [[nodiscard]] std::optional<std::string> maybe_text(const std::string& name) const;
    [[nodiscard]] std::int64_t integer(const std::string& name, std::int64_t fallback = 0) const;
    [[nodiscard]] std::optional<std::int64_t> maybe_integer(const std::string& name) const;
    [[nodiscard]] std::optional<double> maybe_number(const std::string& name) const;
    [[nodiscard]] bool flag(const std::string& name, bool fallback = false) const;
    [[nodiscard]] std::optional<bool> maybe_flag(const std::string& name) const;
    [[nodiscard]] std::optional<Bytes> maybe_bytes(const std::string& name) const;
    [[nodiscard]] std::optional<WallTime> maybe_time(const std::string& name) const;
    [[nodiscard]] std::vector<std::string> texts(const std::string& name) const;
    [[nodiscard]] TextMap text_map(const std::string& name) const;
    // As text_map, but numbers count as texts: quantities, int-or-string.
    [[nodiscard]] TextMap quantity_map(const std::string& name) const;
    [[nodiscard]] std::string int_or_text(const std::string& name, std::string fallback = "") const;
    // The value as it is. Everything below it counts as read.
    [[nodiscard]] RawJson raw(const std::string& name) const;
    // The items of a list as they are.
    [[nodiscard]] std::vector<RawJson> raw_items(const std::string& name) const;
    // This object itself as it is.
    [[nodiscard]] RawJson raw_self() const;
    void each(const std::string& name, const std::function<void(const JsonReader&)>& visit) const;

    template <class E>
    [[nodiscard]] E choice(const std::string& name, E fallback) const {
        const std::optional<std::string> chosen = maybe_text(name);
        const std::optional<E> value = chosen ? parse_choice<E>(*chosen) : fallback;
        if (!value) {
            complain(name, fmt::format("'{}' is not a choice", *chosen));
        }
        return value.value_or(fallback);
    }

    void complain(const std::string& name, std::string_view what) const;

private:
    [[nodiscard]] std::string path_of(const std::string& name) const;
    [[nodiscard]] const web::json::value* find(const std::string& name) const;
    // As find(); a value for which `fits` is false leaves "must be <what>" and reads as absent.
    [[nodiscard]] const web::json::value* find(
        const std::string& name,
        bool (web::json::value::*fits)() const,
        std::string_view what) const;

    const web::json::value* value_;
    std::string path_;
    ReadLog* log_;
};

// Parses `text` and hands the root to `read`. kInvalidArgument: not JSON, not an object, or `read`
// complained; the message has all complaints.
Status read_json(std::string_view text, const std::function<void(const JsonReader&)>& read);

// The parts that all kinds share.
ObjectMeta read_meta(const JsonReader& root);
std::vector<Condition> read_conditions(const JsonReader& status);  // sorted by type

// What the parser of a kind is made of: `read` fills a T from the root.
template <class T>
Result<T> read_document(std::string_view text, T (*read)(const JsonReader&)) {
    T result;
    STOKER_TRY_VOID(read_json(text, [&](const JsonReader& root) { result = read(root); }));
    return result;
}

// The paths that `read` knows, as "spec.datasets[].name"; ".*" ends a part that it passes on
// unread.
template <class T>
std::set<std::string> record_fields(T (*read)(const JsonReader&)) {
    ReadLog log;
    log.recording = true;
    static_cast<void>(read(JsonReader{nullptr, "", log}));
    return log.fields;
}

}  // namespace stoker::control
