import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.deploy.SparkSubmitArguments;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Says how Spark reads command lines of spark-submit, without running them.
 *
 * <p>Each line of standard input is a JSON list of words after the program. The first answer has the options that Spark
 * knows, each other one what the submission would be; null: Spark refuses the line.
 */
public final class SparkLines {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String[] TEXTS = {
    "master", "deployMode", "name", "mainClass", "primaryResource", "jars", "packages", "packagesExclusions",
    "repositories", "pyFiles", "files", "archives", "driverMemory", "driverCores", "driverExtraJavaOptions",
    "driverExtraLibraryPath", "driverExtraClassPath", "executorMemory", "executorCores", "numExecutors", "queue"
  };

  private SparkLines() {}

  public static void main(String[] unused) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err);
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    SparkSubmitArguments any = arguments("local:///a.py");
    Map<String, Object> known = new LinkedHashMap<>();
    known.put("options", table(any, "opts"));
    known.put("switches", table(any, "switches"));
    answers.println(JSON.writeValueAsString(known));
    for (String order = orders.readLine(); order != null; order = orders.readLine()) {
      answers.println(JSON.writeValueAsString(read(JSON.readValue(order, String[].class))));
    }
  }

  private static Object table(Object of, String name) throws Exception {
    Field field = Class.forName("org.apache.spark.launcher.SparkSubmitOptionParser").getDeclaredField(name);
    field.setAccessible(true);
    return field.get(of);
  }

  private static SparkSubmitArguments arguments(String... words) {
    return new SparkSubmitArguments(
        CollectionConverters.asScala(List.of(words)).toSeq(),
        scala.collection.immutable.Map$.MODULE$.empty());
  }

  private static Map<String, Object> read(String[] words) throws Exception {
    SparkSubmitArguments found;
    try {
      found = arguments(words);
    } catch (Exception error) {
      error.printStackTrace();
      return null;
    }
    Map<String, Object> made = new LinkedHashMap<>();
    for (String name : TEXTS) {
      Object value = SparkSubmitArguments.class.getMethod(name).invoke(found);
      if (value != null) {
        made.put(name, value);
      }
    }
    Method children = SparkSubmitArguments.class.getMethod("childArgs");
    made.put("childArgs", CollectionConverters.asJava((scala.collection.Iterable<?>) children.invoke(found)));
    made.put("properties", new TreeMap<>(CollectionConverters.asJava(found.sparkProperties())));
    return made;
  }
}
