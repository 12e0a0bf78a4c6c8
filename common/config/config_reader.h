#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"

namespace stoker::config {

// Parses a Kubernetes quantity (common/base/quantity.h) without the suffixes for fractions (m, u,
// n): "256Mi", "1.5Gi", "500M", "17"; or "unlimited". kInvalidArgument: anything else.
Result<Bytes> parse_bytes(std::string_view text);

// Parses "250ms", "30s", "5m" or "2h". kInvalidArgument: anything else, or negative.
Result<Duration> parse_duration(std::string_view text);

// Reads one YAML mapping field by field and collects every mistake with its path, so that a person
// sees all of them at once: `datasets[0].windowBytes: "lots" is not a number of bytes, such as
// 256Mi`. Unknown keys are mistakes, too. For trusted local files only (yaml-cpp has no limits).
// Not thread-safe.
//
//     STOKER_TRY(auto in, ConfigReader::parse(text));
//     in.read("socket", options.socket);
//     in.section("metrics", [&](ConfigReader& it) { it.read("listen", options.listen); });
//     STOKER_TRY_VOID(in.finish());
class ConfigReader {
public:
    // kInvalidArgument: not YAML (with line and column), or not a mapping. Empty text is an empty
    // mapping.
    static Result<ConfigReader> parse(std::string_view text);

    ~ConfigReader();
    ConfigReader(ConfigReader&&) noexcept;
    ConfigReader& operator=(ConfigReader&&) noexcept;

    [[nodiscard]] bool has(std::string_view key) const;

    // Replaces `out` if the key is present; otherwise leaves it unchanged.
    void read(std::string_view key, std::string& out);
    void read(std::string_view key, bool& out);
    void read(std::string_view key, std::uint32_t& out);
    void read(std::string_view key, std::uint64_t& out);
    void read(std::string_view key, double& out);
    void read(std::string_view key, Bytes& out);
    void read(std::string_view key, Duration& out);
    void read(std::string_view key, std::vector<std::string>& out);
    // Reads a mapping with arbitrary keys.
    void read(std::string_view key, std::map<std::string, std::string>& out);

    // Does what read() does, for a required key that must have a non-empty value.
    void require(std::string_view key, std::string& out);

    // Reads a nested mapping, or a list of mappings; does not call `visit` if the key is absent.
    void section(std::string_view key, const std::function<void(ConfigReader&)>& visit);
    void each(std::string_view key, const std::function<void(ConfigReader&)>& visit);

    // Adds a mistake that the caller found.
    void mistake(std::string_view key, std::string_view what);

    // kInvalidArgument with every mistake, one per line, if there are any. Call it once, on the
    // root reader.
    Status finish();

private:
    struct State;
    explicit ConfigReader(std::unique_ptr<State> state);
    void close();
    static void visit_nested(State nested, const std::function<void(ConfigReader&)>& visit);

    template <class T, class Parse>
    void read_scalar(std::string_view key, T& out, std::string_view expected, Parse convert);

    std::unique_ptr<State> state_;
};

}  // namespace stoker::config
