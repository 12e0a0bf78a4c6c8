#pragma once

#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include <cpprest/json.h>
#include <gtest/gtest.h>

#include "operator/api/json.h"

// The operations "add" and "replace" of a JSON Patch (RFC 6902), as the API server applies them. Any
// mistake fails the test.
namespace stoker::control {

inline std::vector<std::string> parts_of(const std::string& pointer) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < pointer.size(); ++i) {
        if (pointer[i] == '/') {
            parts.emplace_back();
        } else if (pointer[i] == '~') {
            parts.back() += pointer[++i] == '1' ? '/' : '~';
        } else {
            parts.back() += pointer[i];
        }
    }
    return parts;
}

inline void insert_item(web::json::value& list, std::size_t at, const web::json::value& item) {
    ASSERT_LE(at, list.size());
    for (std::size_t i = list.size(); i > at; --i) {
        const web::json::value moved = list.at(i - 1);  // [] may move the items
        list[i] = moved;
    }
    list[at] = item;
}

inline void apply_operation(web::json::value& root, const web::json::value& operation) {
    const std::vector<std::string> parts = parts_of(operation.at("path").as_string());
    const bool adds = operation.at("op").as_string() == "add";
    web::json::value* at = &root;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        at = at->is_array() ? &at->at(std::stoul(parts[i])) : &at->at(parts[i]);
    }
    const std::string& last = parts.back();
    if (!at->is_array()) {
        ASSERT_TRUE(adds || at->has_field(last)) << last;
        (*at)[last] = operation.at("value");
    } else if (adds) {
        insert_item(*at, last == "-" ? at->size() : std::stoul(last), operation.at("value"));
    } else {
        at->at(std::stoul(last)) = operation.at("value");
    }
}

inline Json apply_patch(const Json& document, const Json& patch) {
    web::json::value root = document.value();
    for (const web::json::value& operation : patch.value().as_array()) {
        apply_operation(root, operation);
    }
    return Json(std::move(root));
}

}  // namespace stoker::control
