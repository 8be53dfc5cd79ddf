import java.io.FileInputStream;
import java.io.IOException;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import tech.kwik.core.QuicConnection;
import tech.kwik.core.log.NullLogger;
import tech.kwik.core.server.ServerConnectionConfig;
import tech.kwik.core.server.ServerConnector;
import tech.kwik.flupke.server.Http3ApplicationProtocolFactory;
import tech.kwik.flupke.server.HttpServerRequest;
import tech.kwik.flupke.server.HttpServerResponse;

/**
 * Serves the files of CC_WWW over HTTP/3, by kwik and its HTTP/3 plugin flupke; everything that decides about sending is
 * as kwik has it by default. Settings come in the CC_ variables of the adapter contract.
 */
public class Server {
    private static final Path FOLDER = Path.of(System.getenv("CC_WWW"));

    public static void main(String[] arguments) throws Exception {
        // No Retry: it would cost a round trip that no other server here takes.
        ServerConnectionConfig config = ServerConnectionConfig.builder()
            .maxOpenPeerInitiatedBidirectionalStreams(16)
            .maxOpenPeerInitiatedUnidirectionalStreams(16)
            .retryRequired(false)
            .build();
        int port = Integer.parseInt(System.getenv("CC_PORT"));
        DatagramSocket socket =
            new DatagramSocket(new InetSocketAddress(InetAddress.getByName(System.getenv("CC_ADDRESS")), port));
        ServerConnector connector = ServerConnector.builder()
            .withSocket(socket)
            .withCertificate(new FileInputStream(System.getenv("CC_CERT")), new FileInputStream(System.getenv("CC_KEY")))
            .withSupportedVersion(QuicConnection.QuicVersion.V1)
            .withConfiguration(config)
            .withLogger(new NullLogger())
            .build();
        connector.registerApplicationProtocol("h3", new Http3ApplicationProtocolFactory(Server::answer));
        connector.start();
    }

    private static void answer(HttpServerRequest request, HttpServerResponse response) throws IOException {
        Path file = FOLDER.resolve(request.path().substring(1)).normalize();
        if (!FOLDER.equals(file.getParent()) || !Files.isRegularFile(file)) {
            response.setStatus(404);
            return;
        }
        response.setStatus(200);
        response.addHeader("content-length", String.valueOf(Files.size(file)));
        Files.copy(file, response.getOutputStream());
    }
}
