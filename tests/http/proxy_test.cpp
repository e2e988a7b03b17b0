#include "http/endpoint.hpp"

#include <gmock/gmock.h>

namespace haulout::http {
namespace {

using Kind = Proxy::Kind;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ParseProxy, TakesApartWhatKubectlTakes) {
  struct Row {
    const char* url;
    Kind kind;
    const char* host;
    std::uint16_t port;
    const char* user;
    const char* password;
  };
  for (const Row& row : {Row{"http://squid.corp:3128", Kind::http, "squid.corp", 3128, "", ""},
                         Row{"http://squid.corp", Kind::http, "squid.corp", 80, "", ""},
                         Row{"http://squid.corp:3128/", Kind::http, "squid.corp", 3128, "", ""},
                         Row{"squid.corp:3128", Kind::http, "squid.corp", 3128, "", ""},
                         Row{"HTTP://10.0.0.1:8080", Kind::http, "10.0.0.1", 8080, "", ""},
                         Row{"http://[fd00::1]:8080", Kind::http, "fd00::1", 8080, "", ""},
                         Row{"http://me:p%40ss@squid.corp:3128", Kind::http, "squid.corp", 3128, "me", "p@ss"},
                         Row{"http://me@squid.corp:3128", Kind::http, "squid.corp", 3128, "me", ""},
                         Row{"socks5://localhost:1080", Kind::socks5, "localhost", 1080, "", ""},
                         Row{"socks5h://bastion", Kind::socks5, "bastion", 1080, "", ""},
                         Row{"socks5://me:pw@bastion", Kind::socks5, "bastion", 1080, "me", "pw"}}) {
    const auto proxy = parse_proxy(row.url);
    ASSERT_TRUE(proxy) << row.url << ": " << proxy.error().message();
    EXPECT_EQ(*proxy, (Proxy{row.kind, row.host, row.port, row.user, row.password, ""})) << row.url;
  }
}

TEST(ParseProxy, RefusesTheRestAndKeepsItsSecrets) {
  for (const auto& [url, why] : std::vector<std::pair<std::string, const char*>>{
           {"", "names no host"},
           {"https://u:s3cret@h:443", "https:// proxies are not supported"},
           {"ftp://u:s3cret@h", "ftp:// proxies are not supported"},
           {"http://", "names no host"},
           {"http://u:s3cret@:80", "names no host"},
           {"http://u:s3cret@h:0", "1 to 65535"},
           {"http://u:s3cret@h:65536", "1 to 65535"},
           {"http://u:s3cret@h:squid", "1 to 65535"},
           {"http://u:s3 cret@h", "URL"},
           {"socks5://s3cret@h", "both a user and a password"},
           {"socks5://u:" + std::string(256, 's') + "@h", "255"}}) {
    const auto proxy = parse_proxy(url);
    ASSERT_FALSE(proxy) << url;
    EXPECT_EQ(proxy.error().code(), Errc::invalid);
    EXPECT_THAT(proxy.error().message(), HasSubstr(why)) << url;
    if (!url.starts_with("socks5")) EXPECT_THAT(proxy.error().message(), HasSubstr("http://HOST:PORT"));
    EXPECT_THAT(proxy.error().message(), Not(HasSubstr("s3")));
  }
}

}  // namespace
}  // namespace haulout::http
