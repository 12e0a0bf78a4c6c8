#include "tests/support/api_server/json_patch.h"

#include <string>
#include <vector>

#include <cpprest/json.h>

#include "common/base/check.h"

namespace stoker::test {

namespace {

using web::json::value;

void replace_all(std::string& text, const std::string& from, const std::string& to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
}

std::vector<std::string> split_pointer(const std::string& pointer) {
    std::vector<std::string> steps;
    for (std::size_t at = 0; at < pointer.size();) {
        const auto end = std::min(pointer.find('/', at + 1), pointer.size());
        std::string step = pointer.substr(at + 1, end - at - 1);
        replace_all(step, "~1", "/");
        replace_all(step, "~0", "~");
        steps.push_back(std::move(step));
        at = end;
    }
    return steps;
}

bool is_index(const std::string& step) {
    return !step.empty() && step.find_first_not_of("0123456789") == std::string::npos;
}

bool has_child(const value& node, const std::string& step) {
    return node.is_object() ? node.has_field(step)
                            : node.is_array() && is_index(step) && std::stoul(step) < node.size();
}

value& child(value& node, const std::string& step) {
    return node.is_object() ? node.at(step) : node.at(std::stoul(step));
}

void insert(value& node, const std::string& step, const value& item) {
    if (node.is_object()) {
        node[step] = item;
        return;
    }
    std::size_t index = step == "-" ? node.size() : std::stoul(step);
    for (std::size_t i = node.size(); i > index; --i) {
        const value moved = node.at(i - 1);  // a copy: growing the list moves its items
        node[i] = moved;
    }
    node[index] = item;
}

void remove(value& node, const std::string& step) {
    if (node.is_object()) {
        node.erase(step);
    } else {
        node.erase(std::stoul(step));
    }
}

Status apply_one(value& document, const value& operation) {
    const std::string op = control::string_at(operation, {"op"});
    const std::string pointer = control::string_at(operation, {"path"});
    const auto* argument = control::find_at(operation, {"value"});
    auto steps = split_pointer(pointer);
    const auto refused = [&] { return fail(ErrorCode::kInvalidArgument, op + " " + pointer); };
    if (steps.empty()) {
        return refused();
    }
    const std::string last = steps.back();
    steps.pop_back();
    value* parent = &document;
    for (const std::string& step : steps) {
        if (!has_child(*parent, step)) {
            return refused();
        }
        parent = &child(*parent, step);
    }
    const bool there = has_child(*parent, last);
    const bool appends = parent->is_array() &&
                         (last == "-" || (is_index(last) && std::stoul(last) == parent->size()));
    if (op == "add" && argument != nullptr && (parent->is_object() || there || appends)) {
        insert(*parent, last, *argument);
    } else if (op == "remove" && there) {
        remove(*parent, last);
    } else if (op == "replace" && there && argument != nullptr) {
        child(*parent, last) = *argument;
    } else if (op != "test" || !there || argument == nullptr || child(*parent, last) != *argument) {
        return refused();
    }
    return {};
}

}  // namespace

void merge_patch(value& document, const value& patch) {
    if (!patch.is_object()) {
        document = patch;
        return;
    }
    if (!document.is_object()) {
        document = value::object();
    }
    for (const auto& [name, change] : patch.as_object()) {
        if (!change.is_null()) {
            merge_patch(document[name], change);
        } else if (document.has_field(name)) {
            document.erase(name);
        }
    }
}

Status json_patch(value& document, const value& operations) {
    if (!operations.is_array()) {
        return fail(ErrorCode::kInvalidArgument, "a JSON patch is a list");
    }
    for (const auto& operation : operations.as_array()) {
        STOKER_TRY_VOID(apply_one(document, operation));
    }
    return {};
}

control::Json patched(const control::Json& document, const control::Json& operations) {
    value result = document.value();
    const Status applied = json_patch(result, operations.value());
    STOKER_CHECK(applied.has_value(), "the patch fits");
    return control::Json(std::move(result));
}

}  // namespace stoker::test
