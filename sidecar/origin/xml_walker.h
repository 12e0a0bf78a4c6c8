#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

// A walk over a small XML document in memory: elements, text, the five named entities and character
// references. Attributes are skipped; DOCTYPE, CDATA, comments and processing instructions (but the
// declaration) are errors. Pure.
namespace stoker::sidecar {

class XmlWalker {
public:
    // An element without child elements: its path ("ListBucketResult/Name") and text. false stops
    // the walk.
    using OnLeaf = std::function<bool(std::string_view path, std::string text)>;
    // The end of any other element. false stops the walk.
    using OnEnd = std::function<bool(std::string_view path)>;

    XmlWalker(std::string_view xml, OnLeaf on_leaf, OnEnd on_end);

    // True when the whole document was well-formed and nobody stopped it; otherwise error() says
    // why.
    bool walk();

    [[nodiscard]] std::string error() const;

private:
    bool stop(const char* why);

    [[nodiscard]] std::string_view rest() const { return xml_.substr(at_); }

    void skip_space();
    bool skip_declaration();
    bool element(int depth);
    bool open_tag(std::string_view& name, bool& empty);
    bool attribute();
    bool read_name(std::string_view& name);
    bool contents(std::string_view name, int depth);
    bool close_tag(std::string_view name);
    bool read_text(std::string& text);

    std::string_view xml_;
    OnLeaf on_leaf_;
    OnEnd on_end_;
    std::size_t at_ = 0;
    std::string path_;
    const char* error_ = "refused by the reader";
};

}  // namespace stoker::sidecar
