#include "sidecar/origin/walk_xml.h"

#include <algorithm>
#include <climits>
#include <memory>
#include <utility>

#include <expat.h>
#include <fmt/core.h>

namespace stoker::sidecar {

namespace {

constexpr int kDepthMax = 8;

struct FreeParser {
    void operator()(XML_Parser parser) const { ::XML_ParserFree(parser); }
};

using Parser = std::unique_ptr<XML_ParserStruct, FreeParser>;

struct Walk {
    XML_Parser parser;
    const OnXmlLeaf& on_leaf;
    const OnXmlEnd& on_end;
    std::string path{};
    std::string text{};
    int depth = 0;
    bool is_leaf = false;
    const char* stopped = nullptr;

    void stop(const char* why) {
        if (stopped == nullptr) {
            stopped = why;
            ::XML_StopParser(parser, XML_FALSE);
        }
    }
};

Walk& walk_of(void* data) {
    return *static_cast<Walk*>(data);
}

void start_element(void* data, const XML_Char* name, const XML_Char** /*attributes*/) {
    Walk& walk = walk_of(data);
    if (++walk.depth > kDepthMax) {
        return walk.stop("nested too deeply");
    }
    walk.path += walk.path.empty() ? "" : "/";
    walk.path += name;
    walk.text.clear();
    walk.is_leaf = true;
}

void end_element(void* data, const XML_Char* /*name*/) {
    Walk& walk = walk_of(data);
    if (walk.stopped != nullptr) {
        return;
    }
    const bool goes_on = walk.is_leaf ? walk.on_leaf(walk.path, std::exchange(walk.text, {}))
                                      : walk.on_end(walk.path);
    if (!goes_on) {
        return walk.stop("the caller stopped the walk");
    }
    const std::size_t slash = walk.path.rfind('/');
    walk.path.resize(slash == std::string::npos ? 0 : slash);
    --walk.depth;
    walk.is_leaf = false;
}

void add_text(void* data, const XML_Char* text, int size) {
    walk_of(data).text.append(text, static_cast<std::size_t>(size));
}

void refuse_doctype(void* data, const XML_Char*, const XML_Char*, const XML_Char*, int) {
    walk_of(data).stop("a DOCTYPE");
}

}  // namespace

Status walk_xml(std::string_view xml, const OnXmlLeaf& on_leaf, const OnXmlEnd& on_end) {
    // Skips blank lines, which some servers send before the declaration.
    xml.remove_prefix(std::min(xml.find_first_not_of(" \t\r\n"), xml.size()));
    if (xml.empty() || xml.size() > INT_MAX) {
        return fail(ErrorCode::kInvalidArgument, xml.empty() ? "it is empty" : "more than 2 GiB");
    }
    const Parser parser{::XML_ParserCreate("UTF-8")};
    Walk walk{parser.get(), on_leaf, on_end};
    ::XML_SetUserData(parser.get(), &walk);
    ::XML_SetElementHandler(parser.get(), start_element, end_element);
    ::XML_SetCharacterDataHandler(parser.get(), add_text);
    ::XML_SetStartDoctypeDeclHandler(parser.get(), refuse_doctype);
    if (::XML_Parse(parser.get(), xml.data(), static_cast<int>(xml.size()), 1) == XML_STATUS_OK) {
        return {};
    }
    const char* const why = walk.stopped != nullptr
                                ? walk.stopped
                                : ::XML_ErrorString(::XML_GetErrorCode(parser.get()));
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{} at byte {}", why, ::XML_GetCurrentByteIndex(parser.get())));
}

std::string XmlLeaves::text(std::string_view path) const {
    const auto found = texts.find(path);
    return found == texts.end() ? "" : found->second;
}

XmlLeaves read_xml_leaves(std::string_view xml) {
    XmlLeaves leaves;
    const auto take = [&leaves](std::string_view path, std::string text) {
        leaves.texts.insert_or_assign(std::string{path}, std::move(text));
        return true;
    };
    leaves.is_whole = walk_xml(xml, take, [](std::string_view) { return true; }).has_value();
    return leaves;
}

}  // namespace stoker::sidecar
