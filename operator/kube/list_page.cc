#include "operator/kube/list_page.h"

#include <cstddef>
#include <string_view>

#include <cpprest/json.h>
#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

namespace stoker::control {

namespace {

constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag;

web::json::value parse(std::string_view text) {
    std::error_code error;
    auto value = web::json::value::parse(std::string(text), error);
    return error ? web::json::value() : value;
}

// Finds the positions of "metadata" and of each of "items". The iterative reader calls it at a
// bracket, not behind it.
class ListHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, ListHandler> {
public:
    ListHandler(
        const rapidjson::StringStream& in,
        const char* text,
        const std::function<void(web::json::value&&)>& visit)
        : in_(in),
          text_(text),
          visit_(visit) {}

    // Called for any value except objects and lists.
    bool Default() {
        if (depth_ == 2 && key_ == "items") {
            visit_(web::json::value());
        }
        return true;
    }

    // A list without items may be null.
    bool Null() {
        has_items_ = has_items_ || (depth_ == 1 && key_ == "items");
        return Default();
    }

    bool Key(const char* name, rapidjson::SizeType size, bool /*copy*/) {
        if (depth_ == 1) {
            key_.assign(name, size);
        }
        return true;
    }

    bool StartObject() { return begin(); }

    bool StartArray() {
        has_items_ = has_items_ || (depth_ == 1 && key_ == "items");
        return begin();
    }

    bool EndObject(rapidjson::SizeType /*count*/) { return end(); }

    bool EndArray(rapidjson::SizeType /*count*/) { return end(); }

    [[nodiscard]] bool has_items() const { return has_items_; }

    [[nodiscard]] const web::json::value& metadata() const { return metadata_; }

private:
    [[nodiscard]] bool is_item() const { return depth_ == 3 && key_ == "items"; }

    [[nodiscard]] bool is_metadata() const { return depth_ == 2 && key_ == "metadata"; }

    bool begin() {
        ++depth_;
        if (is_item() || is_metadata()) {
            from_ = in_.Tell();
        }
        return true;
    }

    bool end() {
        const std::string_view value(text_ + from_, in_.Tell() + 1 - from_);
        if (is_item()) {
            visit_(parse(value));
        } else if (is_metadata()) {
            metadata_ = parse(value);
        }
        --depth_;
        return true;
    }

    const rapidjson::StringStream& in_;
    const char* text_;
    const std::function<void(web::json::value&&)>& visit_;
    std::string key_;  // of the outermost object
    std::size_t depth_ = 0;
    std::size_t from_ = 0;
    bool has_items_ = false;
    web::json::value metadata_;
};

}  // namespace

Result<ListPage> read_list(
    const std::string& text, const std::function<void(web::json::value&& item)>& visit) {
    rapidjson::StringStream in(text.c_str());
    ListHandler handler(in, text.c_str(), visit);
    rapidjson::Reader reader;
    const rapidjson::ParseResult read = reader.Parse<kFlags>(in, handler);
    if (!read) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "the list is not JSON at byte {}: {}",
                read.Offset(),
                rapidjson::GetParseError_En(read.Code())));
    }
    ListPage page{
        string_at(handler.metadata(), {"resourceVersion"}),
        string_at(handler.metadata(), {"continue"})};
    if (page.resource_version.empty() || !handler.has_items()) {
        return fail(
            ErrorCode::kInvalidArgument,
            "not a list: metadata.resourceVersion or items is missing");
    }
    return page;
}

}  // namespace stoker::control
