#pragma once

#include <optional>
#include <string>

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include "common/base/result.h"

// Private to operator/sidecars: what the services that read messages as bytes have in common. They
// do so to judge a message's caller and its size before it is parsed.
namespace stoker::control {

// The caller's one bearer token. kForbidden: there is none, or several, or a huge one.
Result<std::string> bearer_token(const grpc::CallbackServerContext& call);

grpc::Status to_grpc(const Error& error);

// What the authenticator says of a token it does not accept.
grpc::Status refuse_token(const Error& error);

// None: it is no message of that type. Empties the buffer.
template <class Message>
std::optional<Message> parse_wire(grpc::ByteBuffer& bytes) {
    std::optional<Message> message(std::in_place);
    if (!grpc::SerializationTraits<Message>::Deserialize(&bytes, &*message).ok()) {
        message.reset();
    }
    return message;
}

template <class Message>
grpc::ByteBuffer to_wire(const Message& message) {
    grpc::ByteBuffer bytes;
    bool owned = false;
    grpc::SerializationTraits<Message>::Serialize(message, &bytes, &owned);
    return bytes;
}

}  // namespace stoker::control
