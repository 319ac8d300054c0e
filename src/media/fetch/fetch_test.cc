#include "media/fetch/fetch.h"

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/video.h"
#include "media/testing/http_host.h"

namespace valora::media {
namespace {

namespace fs = std::filesystem;

std::string text(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

Result<std::string> fetch_text(const std::string& url, const FetchPolicy& policy = {},
                               size_t max_bytes = 1000) {
  VALORA_TRY(items, fetch(url, MediaKind::kImage, max_bytes, policy));
  return text(items.at(0));
}

TEST(FetchData, DecodesBase64) {
  EXPECT_EQ(*fetch_text("data:image/png;base64,Zm9v"), "foo");
  EXPECT_EQ(*fetch_text("DATA:image/png;charset=x;BASE64,Zm9v"), "foo");
  EXPECT_EQ(*fetch_text("data:;base64,Zm9v"), "foo");
  for (const char* wrong : {"data:image/png,foo", "data:image/png;base64", "data:image/png;base64,",
                            "data:base64,Zm9v", "data:image/png;base64,Zm9v,Zm9v"})
    EXPECT_EQ(fetch_text(wrong).error().code, ErrorCode::kInvalidArgument) << wrong;
}

TEST(FetchData, EnforcesByteLimit) {
  EXPECT_TRUE(fetch_text("data:image/png;base64,Zm9vYmFy", {}, 6).ok());
  EXPECT_EQ(fetch_text("data:image/png;base64,Zm9vYmFy", {}, 5).error().code,
            ErrorCode::kPayloadTooLarge);
  const std::string long_url = "data:image/png;base64," + std::string(100'000, 'A');
  EXPECT_EQ(fetch_text(long_url, {}, 1000).error().code, ErrorCode::kPayloadTooLarge);
}

TEST(FetchData, FrameListYieldsOneItemPerFrame) {
  const auto frames = fetch("data:video/jpeg;base64,Zm9v,YmFy,Zg==", MediaKind::kVideo, 100, {});
  ASSERT_TRUE(frames.ok()) << frames.error().message;
  ASSERT_EQ(frames->size(), 3u);
  EXPECT_EQ(text(frames->at(1)), "bar");
  EXPECT_TRUE(is_frame_list("data:Video/JPEG;base64,x"));
  EXPECT_FALSE(is_frame_list("data:video/mp4;base64,x"));
  EXPECT_FALSE(is_frame_list("http://video/jpeg"));
  EXPECT_FALSE(fetch("data:video/jpeg;base64,Zm9v,,Zm9v", MediaKind::kVideo, 100, {}).ok());
  EXPECT_FALSE(fetch("data:video/mp4;base64,Zm9v,Zm9v", MediaKind::kVideo, 100, {}).ok());
  EXPECT_EQ(fetch("data:video/jpeg;base64,Zm9v,YmFy", MediaKind::kVideo, 5, {}).error().code,
            ErrorCode::kPayloadTooLarge);
  std::string endless = "data:video/jpeg;base64,Zg";
  for (int i = 0; i < 10'000; ++i) endless += ",Zg";
  EXPECT_FALSE(fetch(endless, MediaKind::kVideo, 1 << 20, {}).ok());
}

TEST(Fetch, RefusesOtherSchemes) {
  for (const char* url : {"", "picture.png", "/etc/passwd", "ftp://host/x", "gopher://x", ":",
                          "dict://localhost:1/x"})
    EXPECT_EQ(fetch_text(url, {.allow_http = true}).error().code, ErrorCode::kInvalidArgument)
        << url;
}

class FetchFile : public ::testing::Test {
 protected:
  FetchFile()
      : folder_(fs::path(::testing::TempDir()) / ("valora_fetch_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "open" / "inner");
    fs::create_directories(folder_ / "open-not");
    write("open/a b.txt", "inside");
    write("open/inner/c.txt", "deep");
    write("open-not/secret.txt", "secret");
    policy_.allowed_local_path = (folder_ / "open").string();
  }
  ~FetchFile() override { fs::remove_all(folder_); }

  void write(const char* name, const char* content) { std::ofstream(folder_ / name) << content; }
  std::string url(const char* name) const { return "file://" + (folder_ / name).string(); }
  Result<std::string> get(const char* name, size_t max = 100) const {
    return fetch_text(url(name), policy_, max);
  }

  const fs::path folder_;
  FetchPolicy policy_;
};

TEST_F(FetchFile, ReadsUnderTheAllowedRoot) {
  EXPECT_EQ(*get("open/a%20b.txt"), "inside");
  EXPECT_EQ(*get("open/a b.txt"), "inside");
  EXPECT_EQ(*get("open/inner/../inner/c.txt"), "deep");
  EXPECT_EQ(*fetch_text("file://localhost" + (folder_ / "open/inner/c.txt").string(), policy_),
            "deep");
  EXPECT_EQ(get("open/a b.txt", 5).error().code, ErrorCode::kPayloadTooLarge);
}

TEST_F(FetchFile, OutsideFilesLookMissing) {
  fs::create_symlink(folder_ / "open-not/secret.txt", folder_ / "open/link.txt");
  fs::create_directory_symlink(folder_ / "open-not", folder_ / "open/folder");
  const auto missing = get("open/nothing.txt");
  for (const char* name :
       {"open-not/secret.txt", "open/../open-not/secret.txt", "open/%2e%2e/open-not/secret.txt",
        "open/link.txt", "open/folder/secret.txt", "open-not/nothing.txt", "open"}) {
    ASSERT_FALSE(get(name).ok()) << name;
    EXPECT_EQ(get(name).error().message, missing.error().message) << name;
  }
  EXPECT_FALSE(fetch_text(url("open/inner/c.txt")).ok()) << "no root is set";
  EXPECT_FALSE(fetch_text("file://elsewhere/etc/passwd", policy_).ok());
  EXPECT_FALSE(fetch_text("file:open/inner/c.txt", policy_).ok());
  EXPECT_FALSE(get("open/inner/c.txt%00.png").ok());
}

// Another thread keeps swapping a folder of the root with a link that leads outside, while files
// are fetched.
TEST_F(FetchFile, RacingLinkSwapNeverLeavesRoot) {
  fs::create_directories(folder_ / "open/album");
  fs::create_directories(folder_ / "outside");
  write("open/album/x.txt", "inside");
  write("outside/x.txt", "outside");
  const std::string album = folder_ / "open/album", link = folder_ / "open/link";
  fs::create_directory_symlink(folder_ / "outside", link);
  std::atomic<bool> done = false;
  std::thread swapper([&] {
    while (!done) ::renameat2(AT_FDCWD, album.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
  });
  int inside = 0, outside = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto text = get("open/album/x.txt");
    inside += text.ok() && *text == "inside" ? 1 : 0;
    outside += text.ok() && *text == "outside" ? 1 : 0;
  }
  done = true;
  swapper.join();
  EXPECT_GT(inside, 0);
  EXPECT_EQ(outside, 0);
}

TEST_F(FetchFile, RefusesNonRegularFiles) {
  ASSERT_EQ(::mkfifo((folder_ / "open/pipe").c_str(), 0600), 0);
  write("open/empty", "");
  for (const char* name : {"open/pipe", "open/inner", "open/empty"})
    EXPECT_FALSE(get(name).ok()) << name;
}

class FetchHttp : public ::testing::Test {
 protected:
  FetchHttp() { ::setenv("no_proxy", "*", 1); }
  Result<std::string> get(const std::string& path, size_t max_bytes = 1000) const {
    return fetch_text(host_.url(path), policy_, max_bytes);
  }

  testing::HttpHost host_{{
      {"/picture", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nfoo"},
      {"/endless", "HTTP/1.1 200 OK\r\n\r\n" + std::string(100'000, 'x')},
      {"/long", "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n"},
      {"/empty", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
      {"/near", "HTTP/1.1 302 Found\r\nLocation: /picture\r\nContent-Length: 0\r\n\r\n"},
      {"/loop", "HTTP/1.1 302 Found\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n"},
      {"/far", "HTTP/1.1 302 Found\r\nLocation: http://localhost:1/x\r\nContent-Length: 0\r\n\r\n"},
      {"/file", "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"},
  }};
  FetchPolicy policy_{.allow_http = true, .allowed_hosts = {"127.0.0.1"}};
};

TEST_F(FetchHttp, DownloadsAndFollowsRedirects) {
  EXPECT_EQ(*get("/picture"), "foo");
  EXPECT_EQ(*get("/near"), "foo");
  policy_.allowed_hosts.clear();
  policy_.private_addresses = true;
  EXPECT_EQ(*get("/picture"), "foo");
}

TEST_F(FetchHttp, RefusesPrivateAddressesWithoutHostList) {
  policy_.allowed_hosts.clear();
  const std::string reason = "the image cannot be fetched: its host has no public address";
  EXPECT_EQ(get("/picture").error().message, reason);
  const std::string port = host_.url("").substr(std::string("http://127.0.0.1").size());
  for (const char* name : {"localhost", "0.0.0.0", "[::1]", "2130706433", "0x7f.1"})
    EXPECT_EQ(
        fetch_text(std::string("http://") + name + port + "/picture", policy_).error().message,
        reason)
        << name;
  EXPECT_EQ(fetch_text("http://127.0.0.1:1/", policy_).error().message, reason)
      << "a closed port answers alike";
  EXPECT_EQ(host_.requests(), 0);
}

TEST_F(FetchHttp, UsesEnvironmentProxyOnlyIfEnabled) {
  ::unsetenv("no_proxy");
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);
  EXPECT_EQ(*get("/picture"), "foo");
  policy_.use_proxy = true;
  EXPECT_FALSE(get("/picture").ok());
  ::unsetenv("http_proxy");
}

TEST_F(FetchHttp, RefusesWhatThePolicyForbids) {
  EXPECT_NE(get("/far").error().message.find("localhost"), std::string::npos);
  policy_.allowed_hosts = {"example.org"};
  EXPECT_NE(get("/picture").error().message.find("127.0.0.1"), std::string::npos);
  EXPECT_FALSE(fetch_text("http://example.org@127.0.0.1:1/", policy_).ok())
      << "a user name is not the host";
  policy_ = {};
  EXPECT_FALSE(get("/picture").ok());
  EXPECT_EQ(host_.requests(), 1) << "only the redirecting page was asked for";
}

TEST_F(FetchHttp, LimitsRedirects) {
  policy_.allowed_hosts.clear();
  policy_.private_addresses = true;
  EXPECT_FALSE(get("/file").ok());
  EXPECT_NE(get("/loop").error().message.find("redirects"), std::string::npos);
}

TEST_F(FetchHttp, EnforcesByteLimit) {
  EXPECT_EQ(get("/endless").error().code, ErrorCode::kPayloadTooLarge);
  EXPECT_EQ(get("/long").error().code, ErrorCode::kPayloadTooLarge);
  EXPECT_EQ(get("/picture", 2).error().code, ErrorCode::kPayloadTooLarge);
}

TEST(Fetch, OnlyHttpIsRemote) {
  EXPECT_TRUE(is_remote("http://a/b") && is_remote("HTTPS://a/b"));
  EXPECT_FALSE(is_remote("data:image/png;base64,http://") || is_remote("file:///http:") ||
               is_remote("http") || is_remote(""));
}

TEST_F(FetchHttp, FailuresAreInvalidArgument) {
  for (const char* path : {"/missing", "/empty"})
    EXPECT_EQ(get(path).error().code, ErrorCode::kInvalidArgument) << path;
  policy_.image_timeout = std::chrono::seconds(0);
  EXPECT_EQ(fetch_text(host_.silent_url(), policy_).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(FetchHttp, StopCancelsWaitForSilentHost) {
  policy_.image_timeout = std::chrono::seconds(600);
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] {
    return fetch(host_.silent_url(), MediaKind::kImage, 1000, policy_, stop.get_token());
  });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  stop.request_stop();
  EXPECT_EQ(waiting.get().error().code, ErrorCode::kCancelled);
  EXPECT_EQ(
      fetch(host_.url("/picture"), MediaKind::kImage, 1000, policy_, stop.get_token()).error().code,
      ErrorCode::kCancelled);
}

}  // namespace
}  // namespace valora::media
