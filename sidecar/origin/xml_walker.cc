#include "sidecar/origin/xml_walker.h"

#include <charconv>
#include <cstdint>
#include <utility>

#include <fmt/core.h>

namespace stoker::sidecar {

namespace {

constexpr int kDepthMax = 8;
constexpr std::size_t kNameBytesMax = 128;

bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ':' ||
           c == '_' || c == '-' || c == '.';
}

void append_utf8(std::string& out, std::uint32_t point) {
    const auto add = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
    if (point < 0x80) {
        add(point);
    } else if (point < 0x800) {
        add(0xC0U | (point >> 6U));
        add(0x80U | (point & 0x3FU));
    } else if (point < 0x10000) {
        add(0xE0U | (point >> 12U));
        add(0x80U | ((point >> 6U) & 0x3FU));
        add(0x80U | (point & 0x3FU));
    } else {
        add(0xF0U | (point >> 18U));
        add(0x80U | ((point >> 12U) & 0x3FU));
        add(0x80U | ((point >> 6U) & 0x3FU));
        add(0x80U | (point & 0x3FU));
    }
}

// "amp" or "#38" or "#x26", without '&' and ';'.
bool append_entity(std::string& out, std::string_view name) {
    constexpr std::pair<std::string_view, char> kNamed[] = {
        {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    for (const auto& [known, c] : kNamed) {
        if (name == known) {
            out += c;
            return true;
        }
    }
    if (!name.starts_with('#')) {
        return false;
    }
    name.remove_prefix(1);
    const int base = name.starts_with('x') ? 16 : 10;
    name.remove_prefix(base == 16 ? 1 : 0);
    std::uint32_t point = 0;
    const char* end = name.data() + name.size();
    const auto [parsed_to, error] = std::from_chars(name.data(), end, point, base);
    const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
    if (error != std::errc{} || parsed_to != end || point == 0 || point > 0x10FFFF || surrogate) {
        return false;
    }
    append_utf8(out, point);
    return true;
}

}  // namespace

XmlWalker::XmlWalker(std::string_view xml, OnLeaf on_leaf, OnEnd on_end)
    : xml_(xml),
      on_leaf_(std::move(on_leaf)),
      on_end_(std::move(on_end)) {}

std::string XmlWalker::error() const {
    return fmt::format("{} at byte {}", error_, at_);
}

bool XmlWalker::stop(const char* why) {
    error_ = why;
    return false;
}

void XmlWalker::skip_space() {
    while (at_ < xml_.size() && is_space(xml_[at_])) {
        ++at_;
    }
}

bool XmlWalker::walk() {
    if (xml_.starts_with("\xEF\xBB\xBF")) {
        at_ = 3;
    }
    skip_space();
    if (!skip_declaration()) {
        return false;
    }
    skip_space();
    if (!element(1)) {
        return false;
    }
    skip_space();
    return at_ == xml_.size() || stop("text after the last element");
}

bool XmlWalker::skip_declaration() {
    if (!rest().starts_with("<?xml")) {
        return true;
    }
    const auto end = xml_.find("?>", at_);
    if (end == std::string_view::npos) {
        return stop("a declaration without end");
    }
    at_ = end + 2;
    return true;
}

bool XmlWalker::element(int depth) {
    std::string_view name;
    bool empty = false;
    if (depth > kDepthMax) {
        return stop("too deep");
    }
    if (!open_tag(name, empty)) {
        return false;
    }
    const std::size_t parent_length = path_.size();
    path_ += path_.empty() ? "" : "/";
    path_ += name;
    const bool good = empty ? on_leaf_(path_, "") : contents(name, depth);
    path_.resize(parent_length);
    return good;
}

bool XmlWalker::open_tag(std::string_view& name, bool& empty) {
    if (!rest().starts_with('<')) {
        return stop("an element should start here");
    }
    ++at_;
    if (!read_name(name)) {
        return false;
    }
    while (true) {
        skip_space();
        empty = rest().starts_with("/>");
        if (empty || rest().starts_with('>')) {
            at_ += empty ? 2 : 1;
            return true;
        }
        if (!attribute()) {
            return false;
        }
    }
}

bool XmlWalker::attribute() {
    std::string_view ignored;
    if (!read_name(ignored)) {
        return false;
    }
    if (!rest().starts_with("=\"") && !rest().starts_with("='")) {
        return stop("an attribute without a quoted value");
    }
    const auto end = xml_.find(xml_[at_ + 1], at_ + 2);
    if (end == std::string_view::npos) {
        return stop("an attribute without end");
    }
    at_ = end + 1;
    return true;
}

bool XmlWalker::read_name(std::string_view& name) {
    const std::size_t start = at_;
    while (at_ < xml_.size() && is_name_char(xml_[at_])) {
        ++at_;
    }
    name = xml_.substr(start, at_ - start);
    return (!name.empty() && name.size() <= kNameBytesMax) || stop("a name should stand here");
}

bool XmlWalker::contents(std::string_view name, int depth) {
    std::string text;
    bool has_children = false;
    while (true) {
        if (!read_text(text)) {
            return false;
        }
        if (rest().starts_with("</")) {
            break;
        }
        has_children = true;
        if (!element(depth + 1)) {
            return false;
        }
    }
    if (!close_tag(name)) {
        return false;
    }
    return has_children ? on_end_(path_) : on_leaf_(path_, std::move(text));
}

bool XmlWalker::close_tag(std::string_view name) {
    at_ += 2;
    std::string_view closing;
    if (!read_name(closing)) {
        return false;
    }
    skip_space();
    if (closing != name || !rest().starts_with('>')) {
        return stop("an end tag that does not match");
    }
    ++at_;
    return true;
}

// Up to the next '<', entities resolved.
bool XmlWalker::read_text(std::string& text) {
    while (at_ < xml_.size() && xml_[at_] != '<') {
        if (xml_[at_] != '&') {
            text += xml_[at_++];
            continue;
        }
        const auto end = xml_.find(';', at_);
        if (end == std::string_view::npos ||
            !append_entity(text, xml_.substr(at_ + 1, end - at_ - 1))) {
            return stop("an unknown entity");
        }
        at_ = end + 1;
    }
    return at_ < xml_.size() || stop("cut off");
}

}  // namespace stoker::sidecar
