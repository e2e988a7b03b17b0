#include "agent/authority/agent_connection.hpp"

#include <gmock/gmock.h>

#include "tests/k8s_credentials/temp_dir.hpp"

namespace haulout::agent {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;

class AgentConnectionTest : public ::testing::Test {
 protected:
  std::string kubeconfig(const std::string& name) {
    return dir.write(name,
                     "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                     "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
                     "clusters: [{name: c, cluster: {server: 'https://" +
                         name +
                         ".example'}}]\n"
                         "users: [{name: u, user: {tokenFile: " +
                         dir.write("token", "secret") + "}}]\n");
  }
  std::string found() {
    const auto connection = agent_connection(flags, environment, {dir / "missing", dir / "kubelet"});
    return connection ? connection->endpoint.host : "error: " + connection.error().message();
  }

  haulout::testing::TempDir dir;
  k8s::ConnectionFlags flags;
  k8s::Environment environment{.variables = {}, .home = dir.path(), .service_account_dir = dir / "sa"};
};

TEST_F(AgentConnectionTest, LooksInItsOrder) {
  EXPECT_THAT(found(), AllOf(HasSubstr("error"), HasSubstr(dir / "kubelet"), HasSubstr("KUBECONFIG")));
  kubeconfig("kubelet");
  EXPECT_EQ(found(), "kubelet.example");
  dir.write("sa/token", "secret");
  environment.variables = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"KUBERNETES_SERVICE_PORT", "443"}};
  EXPECT_EQ(found(), "10.0.0.1");
  environment.variables["KUBECONFIG"] = kubeconfig("variable");
  EXPECT_EQ(found(), "variable.example");
  flags.kubeconfig = kubeconfig("flag");
  EXPECT_EQ(found(), "flag.example");
}

// What root has in its home is a person's.
TEST_F(AgentConnectionTest, NeverTakesTheCredentialOfAPerson) {
  kubeconfig(".kube/config");
  EXPECT_THAT(found(), HasSubstr("error"));
}

TEST_F(AgentConnectionTest, AFileThatIsBrokenIsNotPassedOver) {
  kubeconfig("kubelet");
  flags.kubeconfig = dir / "missing";
  EXPECT_THAT(found(), AllOf(HasSubstr("error"), HasSubstr(dir / "missing")));
  flags.kubeconfig.clear();
  environment.variables = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"KUBERNETES_SERVICE_PORT", "443"}};
  EXPECT_THAT(found(), HasSubstr("error"));
}

}  // namespace
}  // namespace haulout::agent
