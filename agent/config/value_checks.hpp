// Checks of option values. Each check returns what is wrong and how to write the value, or an empty text if the value
// is valid. Pure, except that check_window() and check_blackout() read zoneinfo.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace haulout::agent {

std::string check_not_blank(const std::string& text);
// Checks a namespace or a pool, which must be a DNS label because it is a part of a Lease's name.
std::string check_dns_label(const std::string& text);
// Checks the name of a Node: a DNS subdomain.
std::string check_node_name(const std::string& text);
std::string check_absolute_path(const std::string& text);
// Checks a URL: http:// or https://, without user, password or query.
std::string check_url(const std::string& text);
// Checks an absolute path, or a URL as check_url(). Neither can be taken for an option of the program that gets it.
std::string check_bundle(const std::string& text);
std::string check_label_key(const std::string& text);
std::string check_label_selector(const std::string& text);
// Checks an address like ":9090", "127.0.0.1:9090" or "[::1]:9090". Port 0 means any free port.
std::string check_listen_address(const std::string& text);
// Checks a number of nodes from "0", or a percentage from "0%" to "100%"; see agent/node/pool.hpp.
std::string check_max_unavailable(const std::string& text);
std::string check_ramp(const std::string& text);
// Checks an order as agent/node/roll_out_order.hpp reads it.
std::string check_roll_out_order(const std::string& text);
// Check the syntax of agent/gates/window.hpp. The zoneinfo of this machine must have the time zone.
std::string check_window(const std::string& text);
std::string check_blackout(const std::string& text);
// Checks a condition as agent/node/readiness.hpp reads it.
std::string check_condition(const std::string& text);
std::string check_waiting_taint(const std::string& text);

// Parses the meaning of a sentinel command's exit codes, like "0=yes,1=no". Returns an error message, or an empty
// string on success.
std::string parse_exit_codes(const std::string& text, std::map<int, bool>& codes);

// Returns the text that parse_exit_codes() reads as these codes.
std::string exit_codes_text(const std::map<int, bool>& codes);

// Splits a command into words, as shell_words() does. Returns an error message, or an empty string on success.
std::string split_words(const std::string& text, std::vector<std::string>& words);
// Returns a text that split_words() converts back to these words.
std::string quoted_words(const std::vector<std::string>& words);

}  // namespace haulout::agent
