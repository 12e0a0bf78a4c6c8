#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "common/base/result.h"

// Walks an XML document from the network with expat. Skips attributes and comments; refuses a
// DOCTYPE, and thus entities that the document defines.
namespace stoker::sidecar {

// Called for an element without child elements, with its path ("ListBucketResult/Name") and text.
// Returning false stops the walk.
using OnXmlLeaf = std::function<bool(std::string_view path, std::string text)>;
// Called at the end of any other element. Returning false stops the walk.
using OnXmlEnd = std::function<bool(std::string_view path)>;

// kInvalidArgument: not well-formed, deeper than 8 elements, or stopped; the message names the
// byte's position.
Status walk_xml(std::string_view xml, const OnXmlLeaf& on_leaf, const OnXmlEnd& on_end);

// The leaves of a small document by path; for a repeated path the last one.
struct XmlLeaves {
    std::map<std::string, std::string, std::less<>> texts;
    bool is_whole = false;  // false: only the leaves before an error

    // The text of the leaf; "" if it is absent.
    [[nodiscard]] std::string text(std::string_view path) const;
};

XmlLeaves read_xml_leaves(std::string_view xml);

}  // namespace stoker::sidecar
