// Writes the JSON text of an object of the simulated cluster. The text is the same as that of Json::dump(), which takes
// several times as long: it examines each byte of a text for UTF-8. A rehearsal spends a tenth of its time there. Pure;
// throws what Json::dump() throws (a text that is not UTF-8).
#pragma once

#include <string>

#include "sim/objects.hpp"

namespace haulout::sim {

void append_json(std::string& out, const Json& value);
std::string json_text(const Json& value);
// The text of an object as an entry of a list: without kind and apiVersion.
std::string item_text(const Json& object);

}  // namespace haulout::sim
