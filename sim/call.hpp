// One parsed request to the simulated API server: verb, object and options. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "http/message.hpp"
#include "sim/objects.hpp"

namespace haulout::sim {

struct Call {
  http::Request request;
  std::string path;
  std::map<std::string, std::string> query;
  const ResourceInfo* info = nullptr;  // null if the path names no resource of the table
  std::string ns;
  std::string name;
  std::string subresource;
  std::string verb;  // get, list, watch, create, update, patch, delete, deletecollection

  std::string option(const std::string& key) const {
    const auto found = query.find(key);
    return found == query.end() ? std::string() : found->second;
  }
  bool truthy(const std::string& key) const {
    const std::string value = option(key);
    return value == "1" || value == "true";
  }
  // Returns true if the request is a dry run. The query says so, except for a DELETE that has a body: the server reads
  // the options of such a DELETE from the body alone.
  bool is_dry_run() const;
  Key key() const { return {std::string(info->resource), ns, name}; }
  std::string header(std::string_view header_name) const {
    return std::string(request.headers.find(header_name).value_or(""));
  }
  // Returns the token of the Authorization header; empty without that header.
  std::string bearer_token() const;
  // Returns the field manager of a write, for managedFields: ?fieldManager=, or else the first part of the User-Agent.
  std::string manager() const;
};

std::string percent_decode(std::string_view text, bool plus_is_space);
Call parse_call(http::Request request);

}  // namespace haulout::sim
