import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.trino.Session;
import io.trino.plugin.iceberg.IcebergPlugin;
import io.trino.plugin.memory.MemoryPlugin;
import io.trino.testing.DistributedQueryRunner;
import io.trino.testing.MaterializedResult;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.LocalDate;
import java.time.ZonedDateTime;
import java.time.temporal.ChronoUnit;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import static io.trino.testing.TestingSession.testSessionBuilder;

/**
 * Trino with a coordinator and a worker. Answers the questions that engine-process.ts describes: each is a statement.
 * The argument is a JSON object: by the name of each catalog, its properties.
 */
public class Reader
{
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args)
            throws Exception
    {
        // Trino's log goes to the standard output.
        PrintStream answers = System.out;
        System.setOut(System.err);
        Session session = testSessionBuilder().setCatalog("memory").setSchema("default").build();
        try (DistributedQueryRunner runner = DistributedQueryRunner.builder(session).setWorkerCount(1).build()) {
            runner.installPlugin(new IcebergPlugin());
            runner.installPlugin(new MemoryPlugin());
            runner.createCatalog("memory", "memory", Map.of());
            JSON.readTree(args[0]).properties().forEach(catalog -> {
                Map<String, String> properties = new HashMap<>();
                catalog.getValue().properties().forEach(one -> properties.put(one.getKey(), one.getValue().asText()));
                runner.createCatalog(catalog.getKey(), "iceberg", properties);
            });
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                answers.write((JSON.writeValueAsString(answer(runner, JSON.readTree(line))) + "\n").getBytes("UTF-8"));
                answers.flush();
            }
        }
        System.exit(0);
    }

    private static Map<String, Object> answer(DistributedQueryRunner runner, JsonNode question)
    {
        try {
            MaterializedResult found = runner.execute(question.asText());
            List<List<Object>> rows = new ArrayList<>();
            found.getMaterializedRows().forEach(row -> {
                List<Object> cells = new ArrayList<>();
                row.getFields().forEach(value -> cells.add(cell(value)));
                rows.add(cells);
            });
            // A statement such as CREATE VIEW has an update type and no columns.
            List<String> columns = found.getUpdateType().isPresent() ? List.of() : found.getColumnNames();
            return Map.of("columns", columns, "rows", rows);
        }
        catch (RuntimeException error) {
            return Map.of("error", String.valueOf(error.getMessage()));
        }
    }

    private static Object cell(Object value)
    {
        return switch (value) {
            case Long number -> String.valueOf(number);
            case LocalDate day -> String.valueOf(day);
            case ZonedDateTime instant -> String.valueOf(ChronoUnit.MICROS.between(Instant.EPOCH, instant.toInstant()));
            case null, default -> value;
        };
    }
}
