#include "sidecar/s3/list_objects.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/core.h>

#include "sidecar/attached/find_object.h"
#include "sidecar/s3/s3_error.h"

namespace stoker::s3 {

namespace {

// Continuation tokens made here: this text, then 'k' or 'p' (see ListQuery), then the key in hex.
constexpr std::string_view kTokenStart = "stoker-";
constexpr std::string_view kLargestCharacter = "\xF4\x8F\xBF\xBF";

std::string make_token(bool is_prefix, std::string_view key) {
    std::string token{kTokenStart};
    token += is_prefix ? 'p' : 'k';
    for (const char c : key) {
        token += fmt::format("{:02x}", static_cast<unsigned char>(c));
    }
    return token;
}

struct Token {
    bool is_prefix = false;
    std::string key;
};

std::optional<Token> parse_token(std::string_view text) {
    if (!text.starts_with(kTokenStart)) {
        return std::nullopt;
    }
    text.remove_prefix(kTokenStart.size());
    if (text.size() % 2 == 0 || (text[0] != 'k' && text[0] != 'p')) {
        return std::nullopt;
    }
    Token token{text[0] == 'p', ""};
    for (std::size_t at = 1; at < text.size(); at += 2) {
        unsigned value = 0;
        const char* end = text.data() + at + 2;
        const auto read = std::from_chars(text.data() + at, end, value, 16);
        if (read.ec != std::errc{} || read.ptr != end) {
            return std::nullopt;
        }
        token.key += static_cast<char>(value);
    }
    return token;
}

bool read_parameter(const std::string& name, const std::string& value, ListQuery& out) {
    constexpr auto kIgnored = std::to_array<std::string_view>({"list-type", "fetch-owner", "x-id"});
    if (name == "prefix") {
        out.prefix = value;
    } else if (name == "delimiter") {
        out.delimiter = value;
    } else if (name == "start-after") {
        out.start_after = value;
    } else if (name == "continuation-token") {
        const auto token = parse_token(value);
        out.token = value;
        out.token_key = token ? token->key : "";
        out.token_is_prefix = token && token->is_prefix;
        return token.has_value();
    } else if (name == "encoding-type") {
        out.url_encoded = value == "url";
        return out.url_encoded;
    } else if (name == "max-keys") {
        const char* end = value.data() + value.size();
        const auto read = std::from_chars(value.data(), end, out.max_keys);
        out.max_keys = std::min(out.max_keys, kListKeysMax);
        return read.ec == std::errc{} && read.ptr == end;
    } else {
        return name.starts_with("X-Amz-") || std::ranges::find(kIgnored, name) != kIgnored.end();
    }
    return true;
}

// The first id after `key`; with `is_prefix`, the first id after all keys that begin with `key`.
std::uint64_t after_key(
    const domain::ManifestView& manifest,
    std::string_view dataset_prefix,
    std::string_view key,
    bool is_prefix) {
    if (!key.starts_with(dataset_prefix)) {
        return key < dataset_prefix ? 0 : manifest.sample_count();
    }
    key.remove_prefix(dataset_prefix.size());
    if (is_prefix) {
        return attached::after_prefix(manifest, 0, key);
    }
    const std::uint64_t id = attached::lower_bound(manifest, key);
    if (id == manifest.sample_count()) {
        return id;
    }
    const domain::StoredObject object = domain::object_of(manifest, domain::SampleId{id});
    return object.key <= key ? attached::id_after(object) : id;
}

// Builds the XML of one page.
class Page {
public:
    Page(
        const ListQuery& query,
        std::string_view dataset_prefix,
        const domain::ManifestView& manifest,
        std::chrono::sys_seconds modified)
        : query_(query),
          dataset_prefix_(dataset_prefix),
          manifest_(manifest),
          modified_(fmt::format(
              "{:%Y-%m-%dT%H:%M:%S}.000Z",
              fmt::gmtime(std::chrono::system_clock::to_time_t(modified)))),
          wanted_(std::string_view{query.prefix}.substr(dataset_prefix.size())) {}

    std::string write() {
        std::uint64_t id = first();
        while (has(id) && count_ < query_.max_keys) {
            id = add(id);
            ++count_;
        }
        const bool is_truncated = query_.max_keys > 0 && has(id);
        return head(is_truncated) + contents_ + prefixes_ + "</ListBucketResult>";
    }

private:
    [[nodiscard]] std::uint64_t first() const {
        std::uint64_t id = attached::lower_bound(manifest_, wanted_);
        if (!query_.start_after.empty()) {
            id = std::max(id, after_key(manifest_, dataset_prefix_, query_.start_after, false));
        }
        if (!query_.token.empty()) {
            id = std::max(
                id,
                after_key(manifest_, dataset_prefix_, query_.token_key, query_.token_is_prefix));
        }
        return id;
    }

    [[nodiscard]] bool has(std::uint64_t id) const {
        return id < manifest_.sample_count() &&
               domain::object_of(manifest_, domain::SampleId{id}).key.starts_with(wanted_);
    }

    // Writes object `id`, or, if a delimiter follows in its key, the common prefix that it shares
    // with the objects after it. Returns the first id not covered.
    std::uint64_t add(std::uint64_t id) {
        const domain::StoredObject object = domain::object_of(manifest_, domain::SampleId{id});
        const auto mark = query_.delimiter.empty()
                              ? std::string_view::npos
                              : object.key.find(query_.delimiter, wanted_.size());
        last_is_prefix_ = mark != std::string_view::npos;
        if (last_is_prefix_) {
            const std::string_view common = object.key.substr(0, mark + query_.delimiter.size());
            last_ = whole_key(common);
            prefixes_ +=
                fmt::format("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", text(last_));
            return attached::after_prefix(manifest_, id, common);
        }
        last_ = whole_key(object.key);
        contents_ += fmt::format(
            "<Contents><Key>{}</Key><LastModified>{}</LastModified><ETag>&quot;{}&quot;</ETag>"
            "<Size>{}</Size><StorageClass>STANDARD</StorageClass></Contents>",
            text(last_),
            modified_,
            xml_escape(object.etag),
            object.size_bytes);
        return attached::id_after(object);
    }

    [[nodiscard]] std::string head(bool is_truncated) const {
        std::string out = fmt::format(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
            "<Name>{}</Name><Prefix>{}</Prefix><MaxKeys>{}</MaxKeys><KeyCount>{}</KeyCount>"
            "<IsTruncated>{}</IsTruncated>",
            xml_escape(query_.bucket),
            text(query_.prefix),
            query_.max_keys,
            count_,
            is_truncated);
        const auto add_if = [&out](std::string_view name, const std::string& value) {
            if (!value.empty()) {
                out += fmt::format("<{}>{}</{}>", name, value, name);
            }
        };
        add_if("Delimiter", text(query_.delimiter));
        add_if("StartAfter", text(query_.start_after));
        add_if("ContinuationToken", xml_escape(query_.token));
        add_if("NextContinuationToken", is_truncated ? make_token(last_is_prefix_, last_) : "");
        add_if("EncodingType", query_.url_encoded ? "url" : "");
        return out;
    }

    [[nodiscard]] std::string whole_key(std::string_view key) const {
        return std::string{dataset_prefix_}.append(key);
    }

    [[nodiscard]] std::string text(std::string_view key) const {
        return query_.url_encoded ? sidecar::percent_encode(key, true) : xml_escape(key);
    }

    const ListQuery& query_;
    std::string_view dataset_prefix_;
    const domain::ManifestView& manifest_;
    std::string modified_;
    std::string_view wanted_;  // the query's prefix without the dataset's prefix
    std::string contents_;
    std::string prefixes_;
    std::string last_;
    bool last_is_prefix_ = false;
    std::uint64_t count_ = 0;
};

}  // namespace

std::optional<ListQuery> parse_list_query(const S3Call& call) {
    if (call.head.method != "GET" || call.head.has_body() || !call.key.empty() ||
        call.bucket.empty() || call.parameter("list-type") != "2") {
        return std::nullopt;
    }
    ListQuery query;
    query.bucket = call.bucket;
    for (const auto& [name, value] : call.query) {
        if (!read_parameter(name, value, query)) {
            return std::nullopt;
        }
    }
    return query;
}

std::string list_page(
    const ListQuery& query,
    std::string_view dataset_prefix,
    const domain::ManifestView& manifest,
    std::chrono::sys_seconds modified) {
    return Page{query, dataset_prefix, manifest, modified}.write();
}

std::optional<std::string> start_after_of_token(std::string_view token) {
    auto parsed = parse_token(token);
    if (!parsed) {
        return std::nullopt;
    }
    if (parsed->is_prefix) {
        parsed->key += kLargestCharacter;
    }
    return std::move(parsed->key);
}

}  // namespace stoker::s3
