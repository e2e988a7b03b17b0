#include "k8s/kubeconfig.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "http/base64.hpp"
#include "k8s/yaml_codec.hpp"

namespace haulout::k8s {
namespace {

using Json = nlohmann::json;

// Reads the fields of one mapping of the document. The first value of a wrong type is noted in `mismatch`, which
// decode_kubeconfig() checks at its end. Until then such a value is read as empty or shortened.
class Reader {
 public:
  Reader(const Json& value, std::string path, std::string& mismatch)
      : value_(value), path_(std::move(path)), mismatch_(mismatch) {}

  std::string string(const char* key) const {
    const Json* found = find(key);
    if (found == nullptr) return {};
    return text_of(key, *found);
  }
  bool boolean(const char* key) const {
    const Json* found = find(key);
    if (found == nullptr) return false;
    if (!found->is_boolean()) return expected(key, *found, "true or false"), false;
    return found->get<bool>();
  }
  std::vector<std::string> strings(const char* key) const {
    std::vector<std::string> out;
    const Json* found = find(key);
    if (found == nullptr) return out;
    if (!found->is_array()) return expected(key, *found, "a list of strings"), out;
    for (std::size_t i = 0; i < found->size(); ++i)
      out.push_back(text_of(fmt::format("{}[{}]", key, i).c_str(), (*found)[i]));
    return out;
  }
  // Returns an empty mapping if the value is null or absent.
  Reader object(const char* key) const {
    static const Json nothing = Json::object();
    const Json* found = find(key);
    if (found == nullptr) return Reader(nothing, path_of(key), mismatch_);
    if (!found->is_object()) return expected(key, *found, "a mapping"), Reader(nothing, path_of(key), mismatch_);
    return Reader(*found, path_of(key), mismatch_);
  }
  std::vector<Reader> objects(const char* key) const {
    std::vector<Reader> out;
    const Json* found = find(key);
    if (found == nullptr) return out;
    if (!found->is_array()) return expected(key, *found, "a list"), out;
    for (std::size_t i = 0; i < found->size(); ++i) {
      const std::string item = fmt::format("{}[{}]", key, i);
      if (!(*found)[i].is_object()) return expected(item.c_str(), (*found)[i], "a mapping"), out;
      out.emplace_back((*found)[i], path_of(item.c_str()), mismatch_);
    }
    return out;
  }
  bool has(const char* key) const { return find(key) != nullptr; }
  const Json& json() const { return value_; }

 private:
  // Returns the text of `found`, the value of `key`. Records a mismatch and returns an empty text if it is no string.
  std::string text_of(const char* key, const Json& found) const {
    if (found.is_string()) return found.get<std::string>();
    expected(key, found, found.is_structured() ? "a string" : "a string; put it in quotes");
    return {};
  }
  const Json* find(const char* key) const {
    const auto found = value_.find(key);
    return found == value_.end() || found->is_null() ? nullptr : &*found;
  }
  std::string path_of(const char* key) const { return path_.empty() ? key : path_ + "." + key; }
  void expected(const char* key, const Json& found, const char* what) const {
    const std::string_view is = found.is_array() ? "list" : found.is_object() ? "mapping" : found.type_name();
    if (mismatch_.empty()) mismatch_ = fmt::format("{} is a {}, expected {}", path_of(key), is, what);
  }

  const Json& value_;
  std::string path_;
  std::string& mismatch_;
};

std::string absolute(const std::string& path, const std::filesystem::path& directory) {
  if (path.empty()) return path;
  return (directory / path).lexically_normal().string();
}

KubeconfigCluster decode_cluster(const Reader& reader, const std::string& file,
                                 const std::filesystem::path& directory) {
  KubeconfigCluster cluster;
  cluster.file = file;
  cluster.server = reader.string("server");
  cluster.tls_server_name = reader.string("tls-server-name");
  cluster.proxy_url = reader.string("proxy-url");
  cluster.certificate_authority = absolute(reader.string("certificate-authority"), directory);
  cluster.certificate_authority_data = reader.string("certificate-authority-data");
  cluster.insecure_skip_tls_verify = reader.boolean("insecure-skip-tls-verify");
  cluster.disable_compression = reader.boolean("disable-compression");
  for (const Reader& extension : reader.objects("extensions")) {
    // The exec plugin protocol reserves this name of an extension for the cluster information that a plugin gets.
    if (extension.string("name") == "client.authentication.k8s.io/exec" && extension.has("extension"))
      cluster.exec_config_json = extension.json()["extension"].dump();
  }
  return cluster;
}

KubeconfigExec decode_exec(const Reader& reader, const std::filesystem::path& directory) {
  KubeconfigExec exec;
  exec.api_version = reader.string("apiVersion");
  exec.command = reader.string("command");
  // A command that is a path is relative to the directory of the kubeconfig. A bare name is looked up in PATH.
  if (exec.command.find('/') != std::string::npos) exec.command = absolute(exec.command, directory);
  exec.args = reader.strings("args");
  for (const Reader& variable : reader.objects("env"))
    exec.env.emplace_back(variable.string("name"), variable.string("value"));
  exec.install_hint = reader.string("installHint");
  exec.interactive_mode = reader.string("interactiveMode");
  exec.provide_cluster_info = reader.boolean("provideClusterInfo");
  return exec;
}

// Returns the expiry of a JSON Web Token (RFC 7519, "exp"). Returns nullopt if it has none that can be read; the server
// checks the token in any case.
std::optional<WallTime> expiry_of(const std::string& token) {
  const std::size_t begin = token.find('.');
  const std::size_t end = begin == std::string::npos ? begin : token.find('.', begin + 1);
  if (end == std::string::npos) return std::nullopt;
  std::string claims = token.substr(begin + 1, end - begin - 1);
  std::replace(claims.begin(), claims.end(), '-', '+');
  std::replace(claims.begin(), claims.end(), '_', '/');
  claims.append((4 - claims.size() % 4) % 4, '=');
  const auto text = http::base64_decode(claims);
  if (!text) return std::nullopt;
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("exp") || !json["exp"].is_number()) return std::nullopt;
  const double seconds = json["exp"].get<double>();
  // A time after 1 January 2200 is ignored: no real token is valid for longer, and a WallTime cannot represent much
  // later times.
  if (!(seconds >= 0) || seconds > 7'258'118'400.0) return std::nullopt;
  return WallTime(std::chrono::seconds(static_cast<std::int64_t>(seconds)));
}

KubeconfigUser decode_user(const Reader& reader, const std::string& file, const std::filesystem::path& directory) {
  KubeconfigUser user;
  user.file = file;
  user.client_certificate = absolute(reader.string("client-certificate"), directory);
  user.client_certificate_data = reader.string("client-certificate-data");
  user.client_key = absolute(reader.string("client-key"), directory);
  user.client_key_data = reader.string("client-key-data");
  user.token = reader.string("token");
  user.token_file = absolute(reader.string("tokenFile"), directory);
  user.username = reader.string("username");
  user.password = reader.string("password");
  user.as = reader.string("as");
  user.as_uid = reader.string("as-uid");
  user.as_groups = reader.strings("as-groups");
  const Reader extra = reader.object("as-user-extra");
  for (const auto& [key, unused] : extra.json().items()) {
    for (std::string& value : extra.strings(key.c_str())) user.as_user_extra.emplace_back(key, std::move(value));
  }
  if (reader.has("auth-provider")) {
    user.auth_provider = reader.object("auth-provider").string("name");
    if (user.auth_provider.empty()) user.auth_provider = "unnamed";
    if (user.auth_provider == "oidc") {
      user.id_token = reader.object("auth-provider").object("config").string("id-token");
      user.id_token_expires = expiry_of(user.id_token);
    }
  }
  if (reader.has("exec")) user.exec = decode_exec(reader.object("exec"), directory);
  return user;
}

template <class Entry>
void add(std::map<std::string, Entry>& entries, const Reader& named, Entry entry, std::string& duplicate) {
  const std::string name = named.string("name");
  if (!entries.emplace(name, std::move(entry)).second) duplicate = name;
}

Error unusable(const std::string& file, std::string_view cause) {
  return Error(Errc::unavailable,
               fmt::format("kubeconfig {}: {}; correct it or name another file with --kubeconfig", file, cause));
}

// Parses JSON. On failure sets `failure` and returns nullopt. The parser's own message quotes the text, so only the
// position of the error is used.
std::optional<Json> parse_json(std::string_view text, std::string& failure) {
  try {
    // No real kubeconfig is nested deeper than 100, and the code that reads the result later is recursive.
    bool too_deep = false;
    auto json = Json::parse(text, [&](int depth, Json::parse_event_t, const Json&) {
      too_deep = too_deep || depth > 100;
      return !too_deep;
    });
    if (!too_deep) return json;
    failure = "nested deeper than 100 levels";
    return std::nullopt;
  } catch (const Json::parse_error& error) {
    failure = place_of(text, error.byte);
    return std::nullopt;
  } catch (const Json::out_of_range&) {
    failure = "a number is out of range";
    return std::nullopt;
  }
}

Result<Json> parse(std::string_view text, const std::string& file) {
  // Tries JSON first if the text looks like JSON, because the JSON parser reports the place of an error better.
  std::string json_failure;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    if (auto json = parse_json(text, json_failure)) return std::move(*json);
  }
  auto converted = yaml_to_json(text);
  if (!converted && !json_failure.empty()) return unusable(file, "not valid JSON: " + json_failure);
  if (!converted) return unusable(file, "it cannot be used as YAML: " + converted.error().message());
  std::string failure;
  auto json = parse_json(*converted, failure);
  if (!json) return unusable(file, "not valid UTF-8");
  if (json->is_null()) return Json(Json::object());
  if (!json->is_object())
    return unusable(file, "not a kubeconfig: expected a mapping with clusters, users and contexts");
  return std::move(*json);
}

}  // namespace

Result<Kubeconfig> decode_kubeconfig(std::string_view text, const std::string& file) {
  auto json = parse(text, file);
  if (!json) return std::move(json).error();
  std::error_code ignored;
  const std::filesystem::path directory = std::filesystem::absolute(file, ignored).parent_path();

  Kubeconfig config;
  config.files = {file};
  std::string mismatch;
  std::string duplicate;
  const Reader root(*json, "", mismatch);
  const std::string kind = root.string("kind");
  const std::string api_version = root.string("apiVersion");
  if ((!kind.empty() && kind != "Config") || (!api_version.empty() && api_version != "v1"))
    return unusable(file, fmt::format("not a kubeconfig: it is {} {}, expected v1 Config", api_version, kind));
  config.current_context = root.string("current-context");
  for (const Reader& named : root.objects("clusters"))
    add(config.clusters, named, decode_cluster(named.object("cluster"), file, directory), duplicate);
  for (const Reader& named : root.objects("users"))
    add(config.users, named, decode_user(named.object("user"), file, directory), duplicate);
  for (const Reader& named : root.objects("contexts")) {
    const Reader context = named.object("context");
    KubeconfigContext entry{file, context.string("cluster"), context.string("user"), context.string("namespace")};
    add(config.contexts, named, std::move(entry), duplicate);
  }
  if (!mismatch.empty()) return unusable(file, mismatch);
  if (!duplicate.empty()) return unusable(file, fmt::format("the name \"{}\" is given twice in one list", duplicate));
  return config;
}

void merge_kubeconfig(Kubeconfig& into, Kubeconfig from) {
  into.files.insert(into.files.end(), from.files.begin(), from.files.end());
  if (into.current_context.empty()) into.current_context = std::move(from.current_context);
  into.clusters.merge(std::move(from.clusters));
  into.users.merge(std::move(from.users));
  into.contexts.merge(std::move(from.contexts));
}

std::string cluster_info_json(const KubeconfigCluster& cluster) {
  Json info = {{"server", cluster.server}};
  if (!cluster.tls_server_name.empty()) info["tls-server-name"] = cluster.tls_server_name;
  if (cluster.insecure_skip_tls_verify) info["insecure-skip-tls-verify"] = true;
  if (!cluster.proxy_url.empty()) info["proxy-url"] = cluster.proxy_url;
  if (cluster.disable_compression) info["disable-compression"] = true;
  if (!cluster.exec_config_json.empty()) info["config"] = Json::parse(cluster.exec_config_json, nullptr, false);
  // The address of the server may come from a flag and contain invalid UTF-8, which must not make dump() throw.
  return info.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace haulout::k8s
