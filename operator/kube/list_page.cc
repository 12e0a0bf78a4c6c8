#include "operator/kube/list_page.h"

#include <cstring>
#include <optional>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>
#include <rapidjson/reader.h>

namespace stoker::control {

namespace {

bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// cpprestsdk limits the nesting of a document; this check does not.
bool is_json(const std::string& text) {
    rapidjson::StringStream in(text.c_str());
    rapidjson::BaseReaderHandler<> ignore;
    return !rapidjson::Reader().Parse<rapidjson::kParseIterativeFlag>(in, ignore).IsError();
}

// Null if the JSON is nested too deeply for cpprestsdk; nullopt: not JSON.
std::optional<web::json::value> parse(const std::string& text) {
    std::error_code error;
    auto value = web::json::value::parse(text, error);
    if (!error) {
        return value;
    }
    return is_json(text) ? std::optional(web::json::value()) : std::nullopt;
}

}  // namespace

Status ListReader::push(std::string_view bytes) {
    while (!bytes.empty() && failed_) {
        if (in_value_) {
            bytes.remove_prefix(scan_value(bytes));
            continue;
        }
        if (!is_space(bytes.front())) {
            take(bytes.front());
        }
        if (!in_value_) {  // else its first byte is read again as part of the value
            bytes.remove_prefix(1);
            ++position_;
        }
    }
    return failed_;
}

void ListReader::take(char c) {
    switch (expect_) {
        case Expect::kList:
            return go_on(c == '{', Expect::kFirstName, "{");
        case Expect::kFirstName:
            if (c == '}') {
                return go_on(true, Expect::kNothing, "");
            }
            [[fallthrough]];
        case Expect::kName:
            return c == '"' ? begin_value(c) : refuse("a name");
        case Expect::kColon:
            return go_on(c == ':', Expect::kValue, ":");
        case Expect::kValue:
            has_items_ = has_items_ || (name_ == "items" && c == '[');
            return name_ == "items" && c == '[' ? go_on(true, Expect::kFirstItem, "")
                                                : begin_value(c);
        case Expect::kFirstItem:
            if (c == ']') {
                return go_on(true, Expect::kAfterValue, "");
            }
            [[fallthrough]];
        case Expect::kItem:
            return begin_value(c);
        case Expect::kAfterValue:
            return go_on(
                c == ',' || c == '}', c == ',' ? Expect::kName : Expect::kNothing, ", or }");
        case Expect::kAfterItem:
            return go_on(
                c == ',' || c == ']', c == ',' ? Expect::kItem : Expect::kAfterValue, ", or ]");
        case Expect::kNothing:
            return refuse("the end");
    }
}

void ListReader::go_on(bool fits, Expect next, std::string_view what) {
    if (fits) {
        expect_ = next;
    } else {
        refuse(what);
    }
}

void ListReader::begin_value(char c) {
    if (std::strchr(",:]}", c) != nullptr) {
        refuse("a value");
        return;
    }
    value_.clear();
    in_value_ = true;
    in_text_ = escaped_ = false;
    depth_ = 0;
}

std::size_t ListReader::scan_value(std::string_view bytes) {
    std::size_t used = 0;
    bool ended = false;
    while (used < bytes.size() && !ended) {
        const char c = bytes[used];
        if (in_text_) {
            ended = c == '"' && !escaped_ && depth_ == 0;
            in_text_ = c != '"' || escaped_;
            escaped_ = c == '\\' && !escaped_;
        } else if (c == '"') {
            in_text_ = true;
        } else if (c == '{' || c == '[') {
            ++depth_;
        } else if (depth_ == 0 && (is_space(c) || std::strchr(",:]}", c) != nullptr)) {
            break;  // the end of a number or a word, which is not part of it
        } else if (c == '}' || c == ']') {
            ended = --depth_ == 0;
        }
        ++used;
    }
    ended = ended || used < bytes.size();
    value_.append(bytes.substr(0, used));
    position_ += used;
    if (value_.size() > item_bytes_max_) {
        failed_ = fail(
            ErrorCode::kResourceExhausted,
            fmt::format("an item of a list is longer than {} bytes", item_bytes_max_));
    } else if (ended) {
        end_value();
    }
    return used;
}

void ListReader::end_value() {
    in_value_ = false;
    if (in_items()) {
        end_item();
        return;
    }
    std::optional<web::json::value> value = parse(value_);
    if (!value) {
        refuse("a value");
    } else if (expect_ != Expect::kValue) {
        name_ = value->is_string() ? value->as_string() : "";
        expect_ = Expect::kColon;
    } else {
        has_items_ = has_items_ || (name_ == "items" && value->is_null());
        if (name_ == "metadata") {
            page_ = {string_at(*value, {"resourceVersion"}), string_at(*value, {"continue"})};
        }
        expect_ = Expect::kAfterValue;
    }
}

void ListReader::end_item() {
    std::optional<web::json::value> item = parse(value_);
    if (!item) {
        refuse("an item");
        return;
    }
    expect_ = Expect::kAfterItem;
    visit_(item->is_object() ? *std::move(item) : web::json::value());
}

void ListReader::refuse(std::string_view what) {
    failed_ = fail(
        ErrorCode::kInvalidArgument,
        fmt::format("the list is not JSON: expected {} at byte {}", what, position_));
}

Result<ListPage> ListReader::finish() {
    STOKER_TRY_VOID(failed_);
    if (expect_ != Expect::kNothing) {
        refuse("more");
        return fail(failed_.error());
    }
    if (page_.resource_version.empty() || !has_items_) {
        return fail(
            ErrorCode::kInvalidArgument,
            "not a list: metadata.resourceVersion or items is missing");
    }
    return page_;
}

Result<ListPage> read_list(
    const std::string& text, const std::function<void(web::json::value&& item)>& visit) {
    ListReader reader(visit);
    STOKER_TRY_VOID(reader.push(text));
    return reader.finish();
}

}  // namespace stoker::control
