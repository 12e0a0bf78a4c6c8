#include "sidecar/origin/s3_xml.h"

#include <charconv>
#include <utility>

#include <fmt/core.h>

#include "sidecar/origin/walk_xml.h"

namespace stoker::sidecar {

namespace {

int hex_value(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return -1;
}

std::string_view without_quotes(std::string_view text) {
    const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
    return quoted ? text.substr(1, text.size() - 2) : text;
}

// Collects the leaves of a ListBucketResult.
class ListReader {
public:
    bool leaf(std::string_view path, std::string text) {
        constexpr std::string_view kObject = "ListBucketResult/Contents/";
        constexpr std::string_view kPage = "ListBucketResult/";
        if (path.starts_with(kObject)) {
            return object_leaf(path.substr(kObject.size()), std::move(text));
        }
        if (!path.starts_with(kPage)) {
            return refuse("not a ListBucketResult");
        }
        const std::string_view name = path.substr(kPage.size());
        if (name == "IsTruncated") {
            truncated_ = text == "true";
            saw_truncated_ = truncated_ || text == "false";
        } else if (name == "NextContinuationToken") {
            page_.next_token = std::move(text);
        } else if (name == "EncodingType") {
            url_encoded_ = text == "url";
        }
        return true;
    }

    bool end(std::string_view path) {
        if (path == "ListBucketResult/Contents") {
            if (!has_key_ || !has_size_) {
                return refuse("an object without key or size");
            }
            page_.objects.push_back(std::move(object_));
            object_ = {};
            has_key_ = has_size_ = false;
        }
        root_done_ = root_done_ || path == "ListBucketResult";
        return true;
    }

    // The result; call it after a walk without an error.
    Result<ListPage> take() {
        if (!root_done_ || !saw_truncated_) {
            return fail(ErrorCode::kUnavailable, "malformed listing: no IsTruncated");
        }
        if (truncated_ == page_.next_token.empty()) {
            return fail(
                ErrorCode::kUnavailable,
                "malformed listing: IsTruncated and NextContinuationToken disagree");
        }
        for (domain::ListedObject& object : page_.objects) {
            if (url_encoded_) {
                auto decoded = percent_decode(object.key, true);
                if (!decoded) {
                    return fail(
                        ErrorCode::kUnavailable,
                        fmt::format("malformed listing: key '{}' is badly encoded", object.key));
                }
                object.key = *std::move(decoded);
            }
        }
        return std::move(page_);
    }

    [[nodiscard]] const char* refusal() const { return refusal_; }

private:
    bool refuse(const char* why) {
        refusal_ = why;
        return false;
    }

    bool object_leaf(std::string_view name, std::string text) {
        if (name == "Key") {
            has_key_ = !text.empty();
            object_.key = std::move(text);
        } else if (name == "ETag") {
            object_.etag = without_quotes(text);
        } else if (name == "Size") {
            const char* end = text.data() + text.size();
            const auto [to, error] = std::from_chars(text.data(), end, object_.size_bytes);
            has_size_ = error == std::errc{} && to == end;
        }
        return true;
    }

    ListPage page_;
    domain::ListedObject object_;
    bool has_key_ = false;
    bool has_size_ = false;
    bool truncated_ = false;
    bool saw_truncated_ = false;
    bool url_encoded_ = false;
    bool root_done_ = false;
    const char* refusal_ = nullptr;
};

}  // namespace

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '+' && plus_is_space) {
            out += ' ';
        } else if (text[i] != '%') {
            out += text[i];
        } else {
            const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
            const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return std::nullopt;
            }
            out += static_cast<char>(high * 16 + low);
            i += 2;
        }
    }
    return out;
}

Result<ListPage> parse_list_page(std::string_view xml) {
    ListReader reader;
    const Status walked = walk_xml(
        xml,
        [&](std::string_view path, std::string text) { return reader.leaf(path, std::move(text)); },
        [&](std::string_view path) { return reader.end(path); });
    if (!walked) {
        const std::string why =
            reader.refusal() != nullptr ? reader.refusal() : walked.error().message;
        return fail(ErrorCode::kUnavailable, fmt::format("malformed listing: {}", why));
    }
    return reader.take();
}

std::optional<S3Error> parse_s3_error(std::string_view xml) {
    const XmlLeaves leaves = read_xml_leaves(xml);
    const std::string root = leaves.texts.contains("Error/Code") ? "" : "ErrorResponse/";
    const S3Error error{leaves.text(root + "Error/Code"), leaves.text(root + "Error/Message")};
    if (!leaves.is_whole || error.code.empty()) {
        return std::nullopt;
    }
    return error;
}

}  // namespace stoker::sidecar
