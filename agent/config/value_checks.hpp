// What a text must look like to be the value of an option. Each check returns what is wrong and how to write it, or
// nothing. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace haulout::agent {

using ValueCheck = std::string (*)(const std::string&);

std::string any_text(const std::string& text);
std::string check_not_blank(const std::string& text);
// A namespace or a pool: one part of a Lease's name.
std::string check_dns_label(const std::string& text);
// The name of a Node.
std::string check_node_name(const std::string& text);
std::string check_absolute_path(const std::string& text);
// http:// or https://, without credentials in it.
std::string check_url(const std::string& text);
std::string check_label_key(const std::string& text);
std::string check_label_selector(const std::string& text);
std::string check_drain_order(const std::string& text);
// ":9090", "127.0.0.1:9090", "[::1]:9090"; port 0 is any free one.
std::string check_listen_address(const std::string& text);
// "0" and more, or "0%" to "100%": see agent/gates/max_unavailable.hpp.
std::string check_max_unavailable(const std::string& text);
// "1" and more, or "1%" to "100%": see drain/guards.hpp.
std::string check_share(const std::string& text);
// See agent/gates/window.hpp. A time zone is looked up on this machine.
std::string check_window(const std::string& text);
std::string check_blackout(const std::string& text);

// "0=yes,1=no": what a sentinel command's exit codes say. Returns what is wrong.
std::string parse_exit_codes(const std::string& text, std::map<int, bool>& codes);

// The words of a command, as shell_words.hpp has them. Returns what is wrong.
std::string split_words(const std::string& text, std::vector<std::string>& words);
// A text that split_words() turns into these words.
std::string quoted_words(const std::vector<std::string>& words);

}  // namespace haulout::agent
