#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/api/json.h"
#include "operator/api/meta.h"

// Reads one JSON object of an API object, field by field; every error has the field's path.
namespace stoker::control {

// Errors and fields that are collected while a document is read.
struct ReadLog {
    std::vector<std::string> errors;  // "spec.trainer.image: must be a text"
    std::set<std::string>
        fields;  // with `recording`: every path that is read; "spec.datasets[].name"
    bool recording = false;
};

// A field that is absent or null reads as its fallback; one of the wrong type reads as its fallback
// and adds an error to the log. So parsing always reaches the end, reports everything at once and
// never throws. With `log.recording` the document is empty, every object and list is entered once,
// and the log collects the fields that the parser knows; tests/contract compares them with the
// CRDs. Not thread-safe; the document and the log must outlive it.
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
    // Like text_map, but numbers become texts: quantities, int-or-string.
    [[nodiscard]] TextMap quantity_map(const std::string& name) const;
    [[nodiscard]] std::string int_or_text(const std::string& name, std::string fallback = "") const;
    // The unparsed value; null: absent. Everything below it counts as read.
    [[nodiscard]] Json raw(const std::string& name) const;
    // The unparsed items of a list.
    [[nodiscard]] std::vector<Json> items(const std::string& name) const;
    // The unparsed items of a list of objects.
    [[nodiscard]] std::vector<Json> raw_items(const std::string& name) const;
    // This object itself, unparsed.
    [[nodiscard]] Json raw_self() const;
    void each(const std::string& name, const std::function<void(const JsonReader&)>& visit) const;

    void complain(const std::string& name, std::string_view what) const;

private:
    [[nodiscard]] std::string path_of(const std::string& name) const;
    [[nodiscard]] const web::json::value* find(const std::string& name) const;
    // Like find(); if `fits` is false, adds the error "must be <what>" and returns null.
    [[nodiscard]] const web::json::value* find(
        const std::string& name,
        bool (web::json::value::*fits)() const,
        std::string_view what) const;

    const web::json::value* value_;
    std::string path_;
    ReadLog* log_;
};

// Calls `read` with the root. kInvalidArgument: not an object, or `read` added errors; the message
// has all of them.
Status read_json(const Json& json, const std::function<void(const JsonReader&)>& read);

}  // namespace stoker::control
