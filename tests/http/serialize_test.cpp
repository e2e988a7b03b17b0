#include <gtest/gtest.h>

#include "http/conversation.hpp"

namespace haulout::http {
namespace {

TEST(Serialize, AGet) {
  Request request;
  request.target = "/api?watch=1";
  request.headers.add("Accept", "application/json");
  const auto bytes = serialize(request, "h:1");
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, "GET /api?watch=1 HTTP/1.1\r\nHost: h:1\r\nAccept: application/json\r\n\r\n");
}

TEST(Serialize, AnEmptyPostSaysSo) {
  Request request;
  request.method = "POST";
  request.headers.add("host", "other");
  const auto bytes = serialize(request, "h:1");
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, "POST / HTTP/1.1\r\nhost: other\r\nContent-Length: 0\r\n\r\n");
}

TEST(Serialize, ADeleteWithABody) {
  Request request;
  request.method = "DELETE";
  request.body = "{}";
  const auto bytes = serialize(request, "h");
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, "DELETE / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}");
}

void expect_invalid(const Request& request) {
  const auto bytes = serialize(request, "h");
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code(), Errc::invalid);
}

TEST(Serialize, NothingCanSmuggleAHeader) {
  Request value;
  value.headers.add("Authorization", "Bearer x\r\nX-Evil: 1");  // as from a token file with two lines
  expect_invalid(value);
  Request name;
  name.headers.add("A: b\r\nC", "d");
  expect_invalid(name);
  Request empty_name;
  empty_name.headers.add("", "d");
  expect_invalid(empty_name);
  for (const char* target : {"", "api", "/a b", "/a\r\nX: y"}) {
    Request request;
    request.target = target;
    expect_invalid(request);
  }
  Request method;
  method.method = "GET /x HTTP/1.1\r\nX:";
  expect_invalid(method);
}

}  // namespace
}  // namespace haulout::http
