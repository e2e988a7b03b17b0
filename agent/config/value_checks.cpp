#include "agent/config/value_checks.hpp"

#include <fmt/format.h>

#include "agent/gates/window.hpp"
#include "agent/hosts/host_command.hpp"
#include "agent/node/pool.hpp"
#include "agent/node/readiness.hpp"
#include "agent/node/roll_out_order.hpp"
#include "agent/node/waiting_taint.hpp"
#include "base/text.hpp"
#include "drain/guards.hpp"
#include "drain/option_table.hpp"
#include "drain/order.hpp"
#include "http/client.hpp"
#include "k8s/label_selector.hpp"

namespace haulout::agent {
namespace {

constexpr std::size_t longest_label = 63;
constexpr std::size_t longest_subdomain = 253;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_lower_alphanumeric(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z');
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_dns_label(std::string_view text) {
  return !text.empty() && text.size() <= longest_label && is_lower_alphanumeric(text.front()) &&
         is_lower_alphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_lower_alphanumeric(c) || c == '-'; });
}

template <class T>
std::string problem_of(const Result<T>& parsed) {
  return parsed ? std::string() : parsed.error().message();
}

}  // namespace

std::string check_not_blank(const std::string& text) {
  return std::all_of(text.begin(), text.end(), is_blank) ? "it is empty" : "";
}

std::string check_dns_label(const std::string& text) {
  if (is_dns_label(text)) return {};
  return "it must consist of lower-case letters, digits and '-', begin and end with a letter or digit, and have at "
         "most 63 characters";
}

std::string check_node_name(const std::string& text) {
  bool valid = text.size() <= longest_subdomain;
  for (std::string_view rest = text; valid;) {
    const auto dot = rest.find('.');
    valid = is_dns_label(rest.substr(0, dot));
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  return valid ? ""
               : "this cannot be a Node's name: its parts between dots are lower-case letters, digits and '-', with no "
                 "'-' at an end; run kubectl get nodes to list the names";
}

std::string check_absolute_path(const std::string& text) {
  return text.starts_with('/') ? "" : "it must be an absolute path: begin it with /";
}

std::string check_bundle(const std::string& text) {
  return text.starts_with('/') || check_url(text).empty()
             ? ""
             : "it must be an absolute path, or an http or https URL without "
               "user, password or query";
}

std::string check_url(const std::string& text) {
  const auto endpoint = http::parse_endpoint(text, nullptr);
  if (endpoint && endpoint->kind != http::Endpoint::Kind::unix_socket) return {};
  return "it must look like https://host:port/path or http://host:port/path, without user, password or query";
}

std::string check_label_key(const std::string& text) {
  using Operator = k8s::LabelSelector::Operator;
  const auto selector = k8s::parse_label_selector(text);
  if (selector && selector->requirements().size() == 1 && selector->requirements().front().op == Operator::exists &&
      selector->requirements().front().key == text)
    return {};
  return "it must be the key of a label, like topology.kubernetes.io/zone";
}

std::string check_label_selector(const std::string& text) {
  const auto selector = drain::parse_pod_selector(text);
  return selector ? "" : selector.error().message();
}

std::string check_listen_address(const std::string& text) {
  const std::string how = "write it like 127.0.0.1:9090, [::1]:9090 or :9090 (all addresses)";
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return "it needs a colon and a port; " + how;
  const auto port = parse_number<std::uint32_t>(std::string_view(text).substr(colon + 1));
  if (!port || *port > 65535) return "the port must be a number from 0 to 65535; " + how;
  const std::string_view host = std::string_view(text).substr(0, colon);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (!bracketed && host.find_first_of(":/[] ") != std::string_view::npos)
    return "this is not an address to listen on; " + how;
  return {};
}

std::string check_max_unavailable(const std::string& text) {
  return problem_of(parse_max_unavailable(text));
}

std::string check_ramp(const std::string& text) {
  return problem_of(parse_ramp(text));
}

std::string check_roll_out_order(const std::string& text) {
  const auto order = parse_roll_out_order(text);
  if (!order) return order.error().message();
  if (order->by != RollOutOrder::By::label) return {};
  const std::string wrong = check_label_key(order->label);
  return wrong.empty() ? wrong : fmt::format("label \"{}\": {}", order->label, wrong);
}

std::string check_window(const std::string& text) {
  return problem_of(parse_window(text));
}

std::string check_blackout(const std::string& text) {
  return problem_of(parse_blackout(text));
}

std::string check_condition(const std::string& text) {
  return problem_of(parse_condition(text));
}

std::string check_waiting_taint(const std::string& text) {
  return problem_of(parse_waiting_taint(text));
}

std::string parse_exit_codes(const std::string& text, std::map<int, bool>& codes) {
  std::string how = "write it like 0=yes,1=no: exit codes from 0 to 255, each once";
  std::map<int, bool> result;
  for (std::string_view rest = text;;) {
    const auto comma = rest.find(',');
    const std::string_view entry = rest.substr(0, comma);
    const auto equals = entry.find('=');
    const auto code = parse_number<std::uint32_t>(entry.substr(0, equals));
    const std::string_view answer = equals == std::string_view::npos ? "" : entry.substr(equals + 1);
    if (!code || *code > 255 || (answer != "yes" && answer != "no")) return how;
    if (!result.emplace(static_cast<int>(*code), answer == "yes").second) return how;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  const bool any = std::any_of(result.begin(), result.end(), [](const auto& entry) { return entry.second; });
  if (!any)
    return "none of the exit codes means yes, so the agent would never detect a needed reboot; add one, for example "
           "1=yes";
  codes = std::move(result);
  return {};
}

std::string exit_codes_text(const std::map<int, bool>& codes) {
  std::string text;
  for (const auto& [code, answer] : codes)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", code, answer ? "yes" : "no");
  return text;
}

std::string split_words(const std::string& text, std::vector<std::string>& words) {
  auto split = shell_words(text);
  if (!split) return split.error().message();
  if (split->empty() || split->front().empty()) return "it does not name a program";
  words = *std::move(split);
  return {};
}

std::string quoted_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    text += '\'';
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

}  // namespace haulout::agent
