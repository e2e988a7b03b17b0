#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "k8s/credentials.hpp"
#include "tests/k8s/temp_dir.hpp"

namespace haulout::k8s {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string config_for(const std::string& host, const std::string& name = "c") {
  return "current-context: " + name + "\nclusters: [{name: " + name + ", cluster: {server: 'https://" + host +
         ":6443'}}]\ncontexts: [{name: " + name + ", context: {cluster: " + name + "}}]\n";
}

class Discover : public ::testing::Test {
 protected:
  haulout::testing::TempDir dir;
  Environment environment;
  ConnectionFlags flags;

  Discover() {
    environment.home = dir / "home";
    environment.service_account_dir = dir / "sa";
  }
  void be_a_pod() {
    environment.variables["KUBERNETES_SERVICE_HOST"] = "fd00::1";
    environment.variables["KUBERNETES_SERVICE_PORT"] = "443";
    dir.write("sa/token", "tok\n");
    dir.write("sa/ca.crt", "CA");
    dir.write("sa/namespace", "agents\n");
  }
  Connection found() {
    auto connection = discover(flags, environment);
    EXPECT_TRUE(connection) << (connection ? "" : connection.error().message());
    return connection ? *connection : Connection{};
  }
  std::string refusal() {
    const auto connection = discover(flags, environment);
    if (connection) return "found " + connection->origin;
    EXPECT_EQ(connection.error().code(), Errc::unavailable);
    return connection.error().message();
  }
};

TEST_F(Discover, TheFlagBeatsTheVariableBeatsTheHomeBeatsThePod) {
  be_a_pod();
  EXPECT_EQ(found().endpoint.host, "fd00::1");
  dir.write("home/.kube/config", config_for("home"));
  EXPECT_EQ(found().endpoint.host, "home");
  environment.variables["KUBECONFIG"] = dir.write("variable", config_for("variable"));
  EXPECT_EQ(found().endpoint.host, "variable");
  flags.kubeconfig = dir.write("flag", config_for("flag"));
  EXPECT_EQ(found().endpoint.host, "flag");
}

TEST_F(Discover, TheListIsMergedAndMissingFilesAreSkipped) {
  environment.variables["KUBECONFIG"] = (dir / "missing") + "::" + dir.write("a", config_for("first")) + ":" +
                                        dir.write("b", config_for("second")) + ":" +
                                        dir.write("c", config_for("third", "d"));
  EXPECT_EQ(found().endpoint.host, "first");
  flags.context = "d";
  EXPECT_EQ(found().endpoint.host, "third");
}

TEST_F(Discover, AMissingFileOfTheVariableFallsBackToThePod) {
  environment.variables["KUBECONFIG"] = dir / "missing";
  EXPECT_THAT(refusal(), AllOf(HasSubstr("$KUBECONFIG"), HasSubstr(dir / "missing"), HasSubstr("--kubeconfig"),
                               HasSubstr("KUBERNETES_SERVICE_HOST"), HasSubstr("--server")));
  be_a_pod();
  EXPECT_EQ(found().origin, "in-cluster ServiceAccount");
  EXPECT_TRUE(found().of_a_pod);
}

TEST_F(Discover, NothingAnywhereSaysWhatWasLookedFor) {
  EXPECT_THAT(refusal(), AllOf(HasSubstr(dir / "home/.kube/config"), HasSubstr("KUBERNETES_SERVICE_HOST")));
  environment.variables["KUBERNETES_SERVICE_HOST"] = "h";
  EXPECT_THAT(refusal(), HasSubstr("KUBERNETES_SERVICE_PORT"));
  environment.variables["KUBERNETES_SERVICE_PORT"] = "443";
  EXPECT_THAT(refusal(), HasSubstr(dir / "sa/token"));
}

TEST_F(Discover, AServerAloneIsEnough) {
  flags.server = "https://h:1";
  EXPECT_EQ(found().endpoint.host, "h");
  EXPECT_FALSE(found().of_a_pod);
}

TEST_F(Discover, AContextWithoutAnyFileIsAnError) {
  be_a_pod();
  flags.context = "prod";
  EXPECT_THAT(refusal(), AllOf(HasSubstr("\"prod\""), HasSubstr("does not exist")));
}

TEST_F(Discover, InThePod) {
  be_a_pod();
  auto connection = found();
  EXPECT_EQ(connection.endpoint.kind, http::Endpoint::Kind::tls);
  EXPECT_EQ(connection.endpoint.port, 443);
  EXPECT_EQ(connection.token.file, dir / "sa/token");
  EXPECT_EQ(connection.ca.file, dir / "sa/ca.crt");
  EXPECT_EQ(connection.default_namespace, "agents");
  environment.variables["KUBERNETES_SERVICE_HOST"] = "[fd00::1]";
  environment.variables["POD_NAMESPACE"] = "pods";
  flags.as = "system:node:n1";
  connection = found();
  EXPECT_EQ(connection.endpoint.host, "fd00::1");
  EXPECT_EQ(connection.default_namespace, "pods");
  EXPECT_EQ(connection.impersonate_user, "system:node:n1");
}

TEST_F(Discover, APodThatIsNotWholeIsAnError) {
  const auto message = [&] {
    const auto connection = in_cluster(environment);
    return connection ? std::string("found") : connection.error().message();
  };
  be_a_pod();
  environment.variables["KUBERNETES_SERVICE_PORT"] = "https";
  EXPECT_THAT(message(), HasSubstr("\"https\""));
  environment.variables["KUBERNETES_SERVICE_PORT"] = "443";
  std::filesystem::remove(dir / "sa/token");
  EXPECT_THAT(message(), AllOf(HasSubstr(dir / "sa/token"), HasSubstr("(is automountServiceAccountToken off?)")));
}

TEST_F(Discover, AFileThatCannotBeReadIsNamedWithItsCause) {
  flags.kubeconfig = dir / "missing";
  EXPECT_THAT(refusal(), AllOf(HasSubstr(dir / "missing"), HasSubstr("No such file")));
  flags.kubeconfig = dir.path();
  EXPECT_THAT(refusal(), AllOf(HasSubstr(dir.path()), HasSubstr("Is a directory")));
  // The error is also returned if the file is in a list of files, although missing files in a list are skipped.
  flags.kubeconfig.clear();
  environment.variables["KUBECONFIG"] = dir.write("a", config_for("first")) + ":" + dir.path();
  EXPECT_THAT(refusal(), HasSubstr("Is a directory"));
}

TEST_F(Discover, AFileWithoutPermissionIsNamedWithItsCause) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  flags.kubeconfig = dir.write("closed", config_for("h"));
  ::chmod(flags.kubeconfig.c_str(), 0);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(flags.kubeconfig), HasSubstr("Permission denied"), HasSubstr("readable")));
}

TEST_F(Discover, AnEmptyFileIsNoConfiguration) {
  be_a_pod();
  dir.write("home/.kube/config", "");
  EXPECT_EQ(found().origin, "in-cluster ServiceAccount");
}

TEST_F(Discover, LoadingAListThatIsMissingAltogetherIsAnError) {
  const auto connection = load_kubeconfig({dir / "a", dir / "b"}, {});
  ASSERT_FALSE(connection);
  EXPECT_THAT(connection.error().message(), AllOf(HasSubstr(dir / "a"), HasSubstr(dir / "b")));
}

TEST(ProcessEnvironment, IsReadOnce) {
  ::setenv("HAULOUT_TEST_VARIABLE", "a=b", 1);
  EXPECT_EQ(Environment::of_process().get("HAULOUT_TEST_VARIABLE"), "a=b");
  ::unsetenv("HAULOUT_TEST_VARIABLE");
  EXPECT_EQ(Environment::of_process().get("HAULOUT_TEST_VARIABLE"), "");
}

}  // namespace
}  // namespace haulout::k8s
