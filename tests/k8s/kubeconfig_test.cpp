#include "k8s/kubeconfig.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "http/base64.hpp"

namespace haulout::k8s {
namespace {
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Kubeconfig decoded(const std::string& text, const std::string& file = "/etc/kube/config") {
  auto config = decode_kubeconfig(text, file);
  EXPECT_TRUE(config) << (config ? "" : config.error().message());
  return config ? *config : Kubeconfig{};
}

// Returns a kubeconfig with one context, cluster and user. The arguments are the contents of YAML flow mappings.
std::string one(const std::string& cluster, const std::string& user,
                const std::string& context = "cluster: c, user: u") {
  return "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters:\n- name: c\n  cluster: {" + cluster +
         "}\nusers:\n- name: u\n  user: {" + user + "}\ncontexts:\n- name: x\n  context: {" + context + "}\n";
}

const std::string server = "server: https://10.0.0.1:6443";

Connection chosen(const std::string& text, const ConnectionFlags& flags = {}) {
  auto connection = connection_of(decoded(text), flags);
  EXPECT_TRUE(connection) << (connection ? "" : connection.error().message());
  return connection ? *connection : Connection{};
}

std::string refusal(const std::string& text, const ConnectionFlags& flags = {}) {
  const auto config = decode_kubeconfig(text, "/etc/kube/config");
  if (!config) {
    EXPECT_EQ(config.error().code(), Errc::unavailable);
    return config.error().message();
  }
  const auto connection = connection_of(*config, flags);
  if (connection) return "no refusal";
  EXPECT_EQ(connection.error().code(), Errc::unavailable);
  return connection.error().message();
}

TEST(Kubeconfig, APlainOne) {
  const auto connection =
      chosen(one(server + "/some/prefix, certificate-authority: ca.pem, tls-server-name: api.example",
                 "client-certificate: pki/me.pem, client-key: /abs/me.key, as: jane, as-uid: '7', as-groups: [a, b], "
                 "as-user-extra: {k: [v1, v2]}",
                 "cluster: c, user: u, namespace: shop"));
  EXPECT_EQ(connection.endpoint.kind, http::Endpoint::Kind::tls);
  EXPECT_EQ(connection.endpoint.host, "10.0.0.1");
  EXPECT_EQ(connection.endpoint.port, 6443);
  EXPECT_EQ(connection.ca, (Material{"", "/etc/kube/ca.pem"}));
  EXPECT_TRUE(connection.verify);
  EXPECT_EQ(connection.tls_server_name, "api.example");
  EXPECT_EQ(connection.client_cert.file, "/etc/kube/pki/me.pem");
  EXPECT_EQ(connection.client_key.file, "/abs/me.key");
  EXPECT_EQ(connection.impersonate_user, "jane");
  EXPECT_EQ(connection.impersonate_uid, "7");
  EXPECT_THAT(connection.impersonate_groups, ElementsAre("a", "b"));
  EXPECT_THAT(connection.impersonate_extra, ElementsAre(std::pair<std::string, std::string>("k", "v1"),
                                                        std::pair<std::string, std::string>("k", "v2")));
  EXPECT_EQ(connection.default_namespace, "shop");
  EXPECT_EQ(connection.origin, "kubeconfig /etc/kube/config, context x");
}

TEST(Kubeconfig, JsonIsReadToo) {
  const auto connection = chosen(R"({"kind": "Config", "apiVersion": "v1", "current-context": "x", "extra": {"a": [1]},
      "clusters": [{"name": "c", "cluster": {"server": "https://h:1"}}], "users": null,
      "contexts": [{"name": "x", "context": {"cluster": "c", "user": ""}}]})");
  EXPECT_EQ(connection.endpoint.host, "h");
  EXPECT_EQ(connection.default_namespace, "default");
}

TEST(Kubeconfig, DataBeatsFiles) {
  const auto connection =
      chosen(one(server + ", certificate-authority: f, certificate-authority-data: " + http::base64_encode("CA"),
                 "client-certificate: f, client-certificate-data: " + http::base64_encode("CERT") +
                     ", client-key: f, client-key-data: " + http::base64_encode("KEY")));
  EXPECT_EQ(connection.ca, (Material{"CA", ""}));
  EXPECT_EQ(connection.client_cert, (Material{"CERT", ""}));
  EXPECT_EQ(connection.client_key, (Material{"KEY", ""}));
}

TEST(Kubeconfig, TheTokenFileIsReadFirst) {
  EXPECT_EQ(chosen(one(server, "token: ' tok '")).token, (Material{"tok", ""}));
  EXPECT_EQ(chosen(one(server, "token: tok, tokenFile: t")).token, (Material{"tok", "/etc/kube/t"}));
}

TEST(Kubeconfig, NoCredentialsWithoutTls) {
  const auto connection = chosen(one("server: 'http://127.0.0.1:8001'", "token: tok, as: jane"));
  EXPECT_TRUE(connection.token.empty());
  EXPECT_EQ(connection.impersonate_user, "jane");
  ConnectionFlags flags;
  flags.server = "http://127.0.0.1:8001";
  EXPECT_TRUE(chosen(one(server, "token: tok"), flags).token.empty());
}

TEST(Kubeconfig, AServerWithoutSchemeIsHttpsIfTlsIsMeant) {
  EXPECT_EQ(chosen(one("server: 'h:1'", "")).endpoint.kind, http::Endpoint::Kind::tcp);
  EXPECT_EQ(chosen(one("server: 'h:1', certificate-authority: f", "")).endpoint.kind, http::Endpoint::Kind::tls);
  ConnectionFlags flags;
  flags.insecure_skip_tls_verify = true;
  EXPECT_EQ(chosen(one("server: 'h:1'", ""), flags).endpoint.kind, http::Endpoint::Kind::tls);
}

// --- merging -----------------------------------------------------------------------------------------------------

TEST(KubeconfigMerge, TheFirstToSetAValueWinsAndEntriesAreWhole) {
  auto merged = decoded(
      "clusters: [{name: c, cluster: {server: 'https://first'}}]\n"
      "users: [{name: u, user: {tokenFile: t}}]\n",
      "/one/config");
  merge_kubeconfig(merged, decoded("current-context: x\n"
                                   "clusters: [{name: c, cluster: {server: 'https://second', tls-server-name: name}},\n"
                                   "           {name: d, cluster: {server: 'https://d', certificate-authority: ca}}]\n"
                                   "contexts: [{name: x, context: {cluster: c, user: u}}]\n",
                                   "/two/config"));
  merge_kubeconfig(merged,
                   decoded("current-context: z\ncontexts: [{name: z, context: {cluster: d}}]\n", "/three/config"));
  const auto x = connection_of(merged, {});
  ASSERT_TRUE(x);
  EXPECT_EQ(x->endpoint.host, "first");
  EXPECT_EQ(x->tls_server_name, "");
  EXPECT_EQ(x->token.file, "/one/t");
  EXPECT_EQ(x->origin, "kubeconfig /one/config:/two/config:/three/config, context x");
  ConnectionFlags flags;
  flags.context = "z";
  const auto z = connection_of(merged, flags);
  ASSERT_TRUE(z);
  EXPECT_EQ(z->ca.file, "/two/ca");
}

// --- flags -------------------------------------------------------------------------------------------------------

TEST(KubeconfigFlags, TheTokenBeatsAllOtherCredentials) {
  ConnectionFlags flags;
  flags.token = "flag";
  for (const auto* user : {"token: file", "tokenFile: f", "username: a, password: b",
                           "client-certificate: f, client-key: f", "auth-provider: {name: gcp}",
                           "exec: {apiVersion: client.authentication.k8s.io/v1, command: p, interactiveMode: Never}"}) {
    const auto connection = chosen(one(server, user), flags);
    EXPECT_EQ(connection.token, (Material{"flag", ""})) << user;
    EXPECT_TRUE(connection.username.empty() && connection.client_cert.empty() && !connection.exec) << user;
  }
}

// kubectl still supports the auth-provider oidc. Its id-token is a bearer token.
TEST(Kubeconfig, AnIdTokenIsUsedAsLongAsItLasts) {
  const std::string token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJqYW5lPz5-IiwiZXhwIjoxNzk1NDU2ODAwfQ.__77";
  const auto connection = chosen(one(server, "auth-provider: {name: oidc, config: {id-token: " + token + "}}"));
  EXPECT_EQ(connection.token, (Material{token, ""}));
  using namespace std::chrono;
  EXPECT_EQ(connection.token_expires, WallTime(sys_days(2026y / 11 / 23) + 18h));
  for (const char* odd : {"opaque", "a.b.c", "a.e30.c", "..", "a.eyJleHAiOiJzb29uIn0.c", "a.eyJleHAiOjFlMzAwfQ.c"}) {
    const auto unknown =
        chosen(one(server, fmt::format("auth-provider: {{name: oidc, config: {{id-token: {}}}}}", odd)));
    EXPECT_EQ(unknown.token.data, odd);
    EXPECT_FALSE(unknown.token_expires) << odd;
  }
}

TEST(KubeconfigFlags, WhoToBe) {
  ConnectionFlags flags;
  flags.username = "jane";
  flags.password = "secret";
  flags.as = "john";
  flags.as_user_extra = {{"scopes", "a"}, {"scopes", "b"}};
  const auto connection = chosen(
      one(server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: p, interactiveMode: Never}"), flags);
  EXPECT_EQ(connection.username, "jane");
  EXPECT_EQ(connection.password, "secret");
  EXPECT_FALSE(connection.exec);
  EXPECT_EQ(connection.impersonate_extra, flags.as_user_extra);
}

TEST(KubeconfigFlags, TheServerBringsItsOwnName) {
  ConnectionFlags flags;
  flags.server = "https://other:7443/p/";
  const std::string text = one(server + "/prefix, tls-server-name: name, certificate-authority: f", "token: tok");
  auto connection = chosen(text, flags);
  EXPECT_EQ(connection.endpoint.host, "other");
  EXPECT_EQ(connection.path_prefix, "/p");
  EXPECT_EQ(connection.tls_server_name, "");
  EXPECT_EQ(connection.ca.file, "/etc/kube/f");
  EXPECT_EQ(connection.token.data, "tok");
  flags.tls_server_name = "mine";
  EXPECT_EQ(chosen(text, flags).tls_server_name, "mine");
}

TEST(KubeconfigFlags, TrustIsReplacedAsAWhole) {
  ConnectionFlags insecure;
  insecure.insecure_skip_tls_verify = true;
  const auto trusting = chosen(one(server + ", certificate-authority-data: '%%'", ""), insecure);
  EXPECT_FALSE(trusting.verify);
  EXPECT_TRUE(trusting.ca.empty());

  ConnectionFlags ca;
  ca.certificate_authority = "/flag/ca";
  const auto careful = chosen(one(server + ", insecure-skip-tls-verify: true", ""), ca);
  EXPECT_TRUE(careful.verify);
  EXPECT_EQ(careful.ca, (Material{"", "/flag/ca"}));

  insecure.certificate_authority = "/flag/ca";
  EXPECT_THAT(refusal(one(server, ""), insecure), HasSubstr("contradicts"));
}

TEST(KubeconfigFlags, ChoosingAndImpersonating) {
  const std::string text =
      "clusters: [{name: a, cluster: {server: 'https://a'}}, {name: b, cluster: {server: 'https://b'}}]\n"
      "users: [{name: u, user: {token: one, as: file}}, {name: v, user: {token: two}}]\n"
      "contexts: [{name: x, context: {cluster: a, user: u}}, {name: z, context: {cluster: b, user: v}}]\n";
  ConnectionFlags flags;
  flags.context = "x";
  flags.cluster = "b";
  flags.user = "v";
  flags.ns = "n";
  flags.as = "jane";
  flags.as_groups = {"g"};
  flags.client_certificate = "/c";
  flags.client_key = "/k";
  const auto connection = chosen(text, flags);
  EXPECT_EQ(connection.endpoint.host, "b");
  EXPECT_EQ(connection.token.data, "two");
  EXPECT_EQ(connection.default_namespace, "n");
  EXPECT_EQ(connection.impersonate_user, "jane");
  EXPECT_THAT(connection.impersonate_groups, ElementsAre("g"));
  EXPECT_EQ(connection.client_cert.file, "/c");
  EXPECT_EQ(connection.client_key.file, "/k");
}

TEST(KubeconfigFlags, AServerAloneNeedsNoFile) {
  ConnectionFlags flags;
  flags.server = "https://h:1";
  flags.token = "t";
  const auto connection = connection_of(Kubeconfig{}, flags);
  ASSERT_TRUE(connection) << connection.error().message();
  EXPECT_EQ(connection->token.data, "t");
}

// --- exec --------------------------------------------------------------------------------------------------------

TEST(KubeconfigExec, IsTakenWithItsSettings) {
  const auto connection = chosen(one(
      server + ", tls-server-name: name, extensions: [{name: client.authentication.k8s.io/exec, extension: {aud: z}}]",
      "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: bin/login, args: [a, '1'], "
      "env: [{name: K, value: v}], installHint: get it, provideClusterInfo: true}"));
  ASSERT_TRUE(connection.exec);
  EXPECT_EQ(connection.exec->command, "/etc/kube/bin/login");
  EXPECT_THAT(connection.exec->args, ElementsAre("a", "1"));
  EXPECT_THAT(connection.exec->env, ElementsAre(std::pair<std::string, std::string>("K", "v")));
  EXPECT_EQ(connection.exec->install_hint, "get it");
  EXPECT_EQ(connection.exec->interactive_mode, ExecPlugin::InteractiveMode::if_available);
  EXPECT_EQ(
      nlohmann::json::parse(connection.exec->cluster_info_json),
      nlohmann::json::parse(R"({"server":"https://10.0.0.1:6443","tls-server-name":"name","config":{"aud":"z"}})"));
}

TEST(KubeconfigExec, ItsFilesAreAmongThoseOfTheConnection) {
  const auto plugin =
      chosen(one(server,
                 "exec: {apiVersion: client.authentication.k8s.io/v1, command: bin/login, interactiveMode: Never, "
                 "args: [--key, /root/key]}"));
  EXPECT_THAT(files_of(plugin),
              ::testing::UnorderedElementsAre(plugin.kubeconfigs.at(0), "/etc/kube/bin/login", "/root/key"));
  Connection connection;
  connection.ca.file = "ca";
  connection.client_cert.file = "cert";
  connection.client_key.file = "key";
  connection.token.file = "token";
  EXPECT_THAT(files_of(connection), ElementsAre("ca", "cert", "key", "token"));
}

TEST(KubeconfigExec, ABareCommandIsLeftToThePath) {
  const auto connection = chosen(
      one(server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: login, interactiveMode: Always}"));
  ASSERT_TRUE(connection.exec);
  EXPECT_EQ(connection.exec->command, "login");
  EXPECT_EQ(connection.exec->interactive_mode, ExecPlugin::InteractiveMode::always);
}

TEST(KubeconfigExec, OtherCredentialsMakeItNeedless) {
  const std::string exec = ", exec: {apiVersion: client.authentication.k8s.io/v1, command: p, interactiveMode: Never}";
  for (const auto* other : {"token: t", "tokenFile: f", "username: a", "client-certificate: f, client-key: f"})
    EXPECT_FALSE(chosen(one(server, other + exec)).exec) << other;
}

// --- refusals ----------------------------------------------------------------------------------------------------

struct Refused {
  const char* what;
  std::string text;
  std::vector<const char*> says;
  ConnectionFlags flags = {};
};

class KubeconfigRefusals : public ::testing::TestWithParam<Refused> {};

TEST_P(KubeconfigRefusals, NameTheFileTheCauseAndTheWayOut) {
  const std::string message = refusal(GetParam().text, GetParam().flags);
  for (const auto* part : GetParam().says) EXPECT_THAT(message, HasSubstr(part));
  EXPECT_THAT(message, AllOf(HasSubstr("/etc/kube/config"), Not(HasSubstr("s3cret"))));
}

ConnectionFlags with(std::string ConnectionFlags::* field, const char* value) {
  ConnectionFlags flags;
  flags.*field = value;
  return flags;
}

const std::string exec_v1 = "apiVersion: client.authentication.k8s.io/v1";
const std::string two_contexts =
    "clusters: [{name: c, cluster: {server: 'https://h'}}]\n"
    "contexts: [{name: prod, context: {cluster: c}}, {name: test, context: {cluster: c}}]\n";

INSTANTIATE_TEST_SUITE_P(
    Table, KubeconfigRefusals,
    ::testing::Values(
        Refused{"not YAML", "a: 1\nb: [s3cret\nc: d\n", {"cannot be used as YAML", "line 3", "--kubeconfig"}},
        Refused{"not a mapping", "- s3cret", {"not a kubeconfig"}},
        Refused{"broken JSON", "{\"token\": \"s3cret\",\n \"a\": ", {"line 2", "JSON"}},
        Refused{"a number beyond all bounds", R"({"clusters": [1e999]})", {"clusters", "mapping"}},
        Refused{"broken JSON after such a number", R"({"clusters": 1e999, "token": "s3cret)", {"JSON", "number"}},
        Refused{"another kind", "kind: Pod\napiVersion: v1", {"not a kubeconfig", "Pod"}},
        Refused{"a number for a string", one(server, "token: 12345"), {"users[0].user.token", "number", "quotes"}},
        Refused{"a mapping for a list", "clusters: {c: {}}", {"clusters", "list"}},
        Refused{"a name given twice", "users: [{name: u}, {name: u}]", {"\"u\"", "twice"}},
        Refused{"no context at all", "clusters: []", {"no contexts", "--server"}},
        Refused{"no current-context, several to choose from",
                two_contexts,
                {"no current-context", "\"prod\", \"test\"", "--context", "use-context"}},
        Refused{"an unknown context by flag",
                two_contexts,
                {"\"prd\"", "--context", "\"prod\", \"test\""},
                with(&ConnectionFlags::context, "prd")},
        Refused{
            "an unknown current-context", "current-context: gone\n" + two_contexts, {"\"gone\"", "current-context"}},
        Refused{
            "an unknown cluster", one(server, "", "cluster: d, user: u"), {"cluster \"d\"", "context \"x\"", "\"c\""}},
        Refused{"an unknown user", one(server, "", "cluster: c, user: v"), {"user \"v\"", "\"u\""}},
        Refused{"an unknown user by flag", one(server, ""), {"--user"}, with(&ConnectionFlags::user, "w")},
        Refused{"no cluster named", one(server, "", "user: u"), {"no cluster", "--cluster"}},
        Refused{"no server", one("", ""), {"no server", "--server"}},
        Refused{"a server that is no address", one("server: 'ftp://h'", ""), {"ftp://h", "https://HOST:PORT"}},
        Refused{"a password in the server", one("server: 'https://me:s3cret@h'", ""), {"password"}},
        Refused{"proxy-url", one(server + ", proxy-url: 'https://u:s3cret@p'", ""), {"proxy-url", "not supported"}},
        Refused{"auth-provider", one(server, "auth-provider: {name: gcp, config: {a: s3cret}}"), {"\"gcp\"", "exec"}},
        Refused{"unknown auth-provider", one(server, "auth-provider: {name: ours}"), {"\"ours\"", "not known"}},
        Refused{"oidc without id-token", one(server, "auth-provider: {name: oidc}"), {"no id-token", "log in"}},
        Refused{"a user name beside a token",
                one(server, "token: s3cret"),
                {"--username", "contradict"},
                with(&ConnectionFlags::username, "jane")},
        Refused{"base64 garbage",
                one(server + ", certificate-authority-data: '%s3cret%'", ""),
                {"certificate-authority-data", "base64"}},
        Refused{"base64 garbage in a key",
                one(server, "client-certificate: f, client-key-data: '%s3cret%'"),
                {"client-key-data", "base64"}},
        Refused{"a CA and no verification",
                one(server + ", certificate-authority: f, insecure-skip-tls-verify: true", ""),
                {"contradicts", "remove one"}},
        Refused{"a certificate without key", one(server, "client-certificate: f"), {"client-key"}},
        Refused{"two ways to authenticate", one(server, "token: s3cret, password: s3cret"), {"remove one"}},
        Refused{"a token of two lines", one(server, "token: \"s3cret\\nX-Header: y\""), {"control character"}},
        Refused{"groups without a user", one(server, "as-groups: [g]"), {"--as"}},
        Refused{"a line break in a group", one(server, "as: j, as-groups: [\"g\\r\\nX: y\"]"), {"control character"}},
        Refused{"an old exec version",
                one(server, "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: p}"),
                {"v1alpha1", "v1"}},
        Refused{"exec without command", one(server, "exec: {" + exec_v1 + ", interactiveMode: Never}"), {"command"}},
        Refused{
            "exec v1 without mode", one(server, "exec: {" + exec_v1 + ", command: p}"), {"interactiveMode", "Never"}},
        Refused{"exec with a mode of its own",
                one(server, "exec: {" + exec_v1 + ", command: p, interactiveMode: Maybe}"),
                {"\"Maybe\""}},
        Refused{"exec with a nameless variable",
                one(server, "exec: {" + exec_v1 + ", command: p, interactiveMode: Never, env: [{value: s3cret}]}"),
                {"exec.env"}}),
    [](const auto& param) {
      std::string name = param.param.what;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
      return name;
    });

// As with kubectl, a kubeconfig without current-context selects no context, not even if it has only one. The token of
// that context must not be sent to another server.
TEST(Kubeconfig, WithoutCurrentContextNoneIsMeant) {
  const std::string text =
      "clusters: [{name: c, cluster: {server: 'https://h'}}]\n"
      "users: [{name: u, user: {token: s3cret}}]\n"
      "contexts: [{name: only, context: {cluster: c, user: u, namespace: shop}}]\n";
  EXPECT_THAT(refusal(text), AllOf(HasSubstr("\"only\""), HasSubstr("--context")));
  ConnectionFlags flags;
  flags.server = "https://elsewhere";
  const auto elsewhere = chosen(text, flags);
  EXPECT_EQ(elsewhere.endpoint.host, "elsewhere");
  EXPECT_TRUE(elsewhere.token.empty());
  EXPECT_EQ(elsewhere.default_namespace, "default");
  flags.context = "only";
  EXPECT_EQ(chosen(text, flags).token.data, "s3cret");
}

}  // namespace
}  // namespace haulout::k8s
