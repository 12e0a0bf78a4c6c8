#include "sidecar/origin/s3_listing.h"

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "sidecar/origin/s3_answer.h"
#include "sidecar/origin/s3_request.h"
#include "sidecar/origin/s3_xml.h"

namespace stoker::sidecar {

namespace {

using PageOrFailure = std::variant<ListPage, OriginFailure>;

PageOrFailure ask_for_page(
    const S3Location& location,
    const ListingContext& context,
    const std::string& token,
    const std::stop_token& stop) {
    auto credentials = context.credentials.get();
    if (!credentials) {
        return failure_of_transport(credentials.error());
    }
    const WallTime now = context.clock.wall_now();
    http::HttpRequest request = list_request(location, token, *credentials, now);
    set_timeouts(request, context.options);
    auto response = context.client.call(std::move(request), stop);
    if (!response) {
        count_request(context, "list", std::string{to_string(response.error().code)});
        return failure_of_transport(std::move(response).error());
    }
    count_request(context, "list", std::to_string(response->status));
    if (response->status != 200) {
        return failure_of_status(response->status, response->headers, response->body, now);
    }
    auto page = parse_list_page(response->body);
    if (!page) {
        return OriginFailure{page.error(), true};
    }
    return *std::move(page);
}

Result<ListPage> get_page(
    const S3Location& location,
    ListingContext& context,
    const std::string& token,
    const std::stop_token& stop) {
    for (std::uint32_t attempt = 1;; ++attempt) {
        PageOrFailure answer = ask_for_page(location, context, token, stop);
        if (auto* page = std::get_if<ListPage>(&answer)) {
            return std::move(*page);
        }
        const auto& failure = std::get<OriginFailure>(answer);
        if (const auto error = wait_for_retry(context, attempt, failure, stop)) {
            return fail(*error);
        }
    }
}

// Objects of the page below the prefix, with relative keys and without folders.
Status take_objects(const ListPage& page, std::string_view prefix, domain::Listing& objects) {
    for (const domain::ListedObject& object : page.objects) {
        if (!object.key.starts_with(prefix) || object.key.ends_with('/')) {
            continue;
        }
        // Servers over a plain directory have no ETag for files that were stored by other means.
        if (object.etag.empty()) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format(
                    "'{}' has no ETag, so a change of it could not be noticed; store it through "
                    "the "
                    "S3 API",
                    object.key));
        }
        const auto key = std::string_view{object.key}.substr(prefix.size());
        STOKER_TRY_VOID(objects.add(key, object.size_bytes, object.etag));
    }
    return {};
}

}  // namespace

Result<domain::Listing> list_s3(
    const S3Location& location,
    ListingContext context,
    const std::function<void(std::uint64_t)>& progress,
    std::stop_token stop) {
    domain::Listing objects;
    const std::string where = fmt::format("listing {}", location.describe());
    std::string token;
    do {
        auto page = get_page(location, context, token, stop);
        if (!page) {
            return fail(page.error().prefixed(where));
        }
        token = page->next_token;
        if (const auto taken = take_objects(*page, location.prefix, objects); !taken) {
            return fail(taken.error().prefixed(where));
        }
        if (progress) {
            progress(objects.size());
        }
    } while (!token.empty());
    return objects;
}

}  // namespace stoker::sidecar
