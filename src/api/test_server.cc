#include "api/test_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"

namespace oasr::testing {
namespace {

void send_all(int connection, std::string_view text) {
  while (!text.empty()) {
    const auto n = ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string read_request(int connection) {
  std::string request;
  char buffer[4096];
  while (request.find("\r\n\r\n") == std::string::npos) {
    const auto n = ::recv(connection, buffer, sizeof buffer, 0);
    if (n <= 0) return {};
    request.append(buffer, static_cast<std::size_t>(n));
  }
  return request;
}

std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const auto start = text.find(before);
  if (start == std::string::npos) return {};
  const auto from = start + before.size();
  return text.substr(from, text.find(after, from) - from);
}

}  // namespace

TestServer::TestServer() {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  CHECK(listener_ >= 0 && ::bind(listener_, generic, size) == 0 && ::listen(listener_, 16) == 0 &&
            ::getsockname(listener_, generic, &size) == 0,
        "no loopback server");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_loop(); });
}

TestServer::~TestServer() {
  stopping_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (auto& connection : connections_) connection.join();
  ::close(listener_);
}

void TestServer::serve(const std::string& path, Resource resource) {
  const std::lock_guard lock(mutex_);
  resources_[path] = std::move(resource);
}

std::string TestServer::url(const std::string& path) const {
  return "http://127.0.0.1:" + std::to_string(port_) + path;
}

std::vector<std::string> TestServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void TestServer::accept_loop() {
  while (!stopping_) {
    const int connection = ::accept(listener_, nullptr, nullptr);
    if (connection < 0) continue;
    connections_.emplace_back([this, connection] {
      answer(connection);
      ::close(connection);
    });
  }
}

std::string TestServer::head_and_body(const std::string& path, std::size_t from, bool ranged,
                                      std::size_t& body_bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = resources_.find(path);
  body_bytes = 0;
  const std::string close = "Connection: close\r\n";
  if (found == resources_.end()) {
    return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n" + close + "\r\n";
  }
  auto& resource = found->second;
  const auto etag = resource.etag.empty() ? "" : "ETag: \"" + resource.etag + "\"\r\n";
  if (!resource.location.empty()) {
    return "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + resource.location + "\r\n" +
           etag + close + "\r\n";
  }
  const auto total = std::to_string(resource.body.size());
  ranged = ranged && resource.ranges;
  if (ranged && from >= resource.body.size()) {
    return "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\nContent-Range: bytes */" +
           total + "\r\n" + close + "\r\n";
  }
  const auto body = ranged ? resource.body.substr(from) : resource.body;
  body_bytes = body.size();
  if (resource.cut_once_at > 0) {
    body_bytes = std::min(std::exchange(resource.cut_once_at, std::size_t{0}), body_bytes);
  }
  auto head = std::string(ranged ? "HTTP/1.1 206 Partial Content\r\n" : "HTTP/1.1 200 OK\r\n") +
              "Content-Length: " + std::to_string(body.size()) + "\r\n" + etag + close;
  if (ranged) {
    head += "Content-Range: bytes " + std::to_string(from) + "-" +
            std::to_string(resource.body.size() - 1) + "/" + total + "\r\n";
  }
  return head + "\r\n" + body.substr(0, body_bytes);
}

void TestServer::answer(int connection) {
  const auto request = read_request(connection);
  const auto path = between(request, "GET ", " HTTP");
  const auto range = between(request, "Range: bytes=", "-\r\n");
  int wait = 0;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back("GET " + path + (range.empty() ? "" : " bytes=" + range + "-"));
    if (const auto found = resources_.find(path); found != resources_.end()) {
      wait = found->second.milliseconds;
    }
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(wait));
  std::size_t body_bytes = 0;
  const auto from = range.empty() ? std::size_t{0} : std::stoul(range);
  send_all(connection, head_and_body(path, from, !range.empty(), body_bytes));
}

}  // namespace oasr::testing
