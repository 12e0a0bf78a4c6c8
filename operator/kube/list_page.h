#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/result.h"
#include "operator/api/json.h"

namespace stoker::control {

// A page of a list without its items.
struct ListPage {
    std::string resource_version;
    std::string continue_token;  // "": it is the last page
};

// Reads a Kubernetes list while its bytes arrive: at most one item and one piece are in memory, so
// that a list of any length needs only the memory of its longest item (docs/adr/0014-libraries.md).
// A server may send a whole list in one answer, whatever the limit of the request. Not thread-safe.
class ListReader {
public:
    static constexpr std::size_t kItemBytesMax = std::size_t{16} * 1024 * 1024;

    // Calls `visit` for each item, in order, during push(). An item that is JSON, but not an object
    // or nested too deeply, is passed as null.
    explicit ListReader(
        std::function<void(web::json::value&& item)> visit,
        std::size_t item_bytes_max = kItemBytesMax)
        : visit_(std::move(visit)),
          item_bytes_max_(item_bytes_max) {}

    // Adds the next bytes, cut anywhere. kInvalidArgument: not JSON, or not a list.
    // kResourceExhausted: an item is too long. After an error every call returns it.
    Status push(std::string_view bytes);

    // Ends the list after the last byte. Errors as push(); also if the document is not complete.
    Result<ListPage> finish();

private:
    // The token that may come next, besides white space.
    enum class Expect : std::uint8_t {
        kList,        // {
        kFirstName,   // a name or }
        kName,        // a name
        kColon,       // :
        kValue,       // the value of a name
        kAfterValue,  // , or }
        kFirstItem,   // an item or ]
        kItem,        // an item
        kAfterItem,   // , or ]
        kNothing,
    };

    [[nodiscard]] bool in_items() const {
        return expect_ == Expect::kFirstItem || expect_ == Expect::kItem;
    }

    void take(char c);
    // Expects `next` if the byte fits; else fails, because `what` was expected.
    void go_on(bool fits, Expect next, std::string_view what);
    void begin_value(char c);
    // Consumes the bytes of the value that has begun; returns how many.
    std::size_t scan_value(std::string_view bytes);
    void end_value();
    void end_item();
    void refuse(std::string_view what);

    std::function<void(web::json::value&& item)> visit_;
    std::size_t item_bytes_max_;
    Expect expect_ = Expect::kList;
    std::string name_;   // the name of the value being read
    std::string value_;  // its bytes so far
    bool in_value_ = false;
    bool in_text_ = false;
    bool escaped_ = false;
    std::size_t depth_ = 0;  // of brackets in the value
    std::size_t position_ = 0;
    bool has_items_ = false;
    ListPage page_;
    Status failed_;
};

// As ListReader, for a complete text.
Result<ListPage> read_list(
    const std::string& text, const std::function<void(web::json::value&& item)>& visit);

}  // namespace stoker::control
