#include "unisono/fault_message.hpp"

#include <system_error>

namespace unisono {

std::string FaultMessage::escaped(const std::string& text) {
    std::string result;
    for (std::size_t at = 0; at < text.size(); ++at) {
        switch (text[at]) {
            case '%': result += "%25"; break;
            case '|': result += "%7C"; break;
            case '\n': result += "%0A"; break;
            case '@': result += at == 0 ? "%40" : "@"; break;
            default: result += text[at];
        }
    }
    return result;
}

FaultMessage& FaultMessage::with_value(const char* name, const std::string& value) {
    text_ += "|" + std::string(name) + "=" + value;
    return *this;
}

FaultMessage& FaultMessage::with(const char* name, const std::string& text) { return with_value(name, escaped(text)); }

FaultMessage& FaultMessage::with(const char* name, std::uint64_t number) {
    return with_value(name, std::to_string(number));
}

FaultMessage& FaultMessage::with_detail(const FaultMessage& detail) {
    text_ += "\n" + detail.text_;
    return *this;
}

FaultMessage MemoryRefused::message(const std::string& rank) const {
    return FaultMessage(id)
        .with_value("rank", rank)
        .with("bytes", bytes)
        .with("reason", std::generic_category().message(error));
}

}  // namespace unisono
