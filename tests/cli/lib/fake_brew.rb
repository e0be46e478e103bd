# brew install --formula, without Homebrew: ruby fake_brew.rb FORMULA ARCHIVE-FOLDER PREFIX runs the formula's install
# in the unpacked archive and its test, and prints its version. SPDX-License-Identifier: MIT
require "digest"
require "pathname"
require "tmpdir"

class Formula
  class << self
    attr_reader :said, :trial
    def self.word(name) = define_method(name) { |value| (@said ||= {})[name] = value }
    %i[desc homepage url version sha256 license depends_on].each { |name| word(name) }
    def test(&block) = @trial = block
  end

  def prefix = Pathname(ARGV[2])
  def include = prefix/"include"
  def testpath = @testpath ||= Pathname(Dir.mktmpdir)
  # (The library is left out for the test's sake; tests/house/install.sh builds it.)
  def std_cmake_args = ["-DCMAKE_INSTALL_PREFIX=#{prefix}", "-DCMAKE_INSTALL_LIBDIR=lib", "-DTRN_LIBRARY=OFF"]

  def system(*words)
    out = IO.popen([*words, err: %i[child out]], &:read)
    abort "#{words.join(" ")}: #{out}" unless $?.success?
  end
end

def ENV.cc = self["CC"] || "cc"

load ARGV[0]
said = Trnmath.said
archive = said.fetch(:url).delete_prefix("file://")
abort "the checksum is another" unless Digest::SHA256.file(archive).hexdigest == said.fetch(:sha256)
abort "a description is one line of at most 80 characters" if said.fetch(:desc).size > 80
formula = Trnmath.new
Dir.chdir(ARGV[1]) { formula.install }
Dir.chdir(formula.testpath) { formula.instance_eval(&Trnmath.trial) }
puts said.fetch(:version)
